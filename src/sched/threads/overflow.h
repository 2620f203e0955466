// overflow.h: a goroutine ran out of stack. The runtime says so, instead of a bare segmentation
// fault.
//
// A touch of a guard raises SIGSEGV. There is no stack left to handle it on, so every M has an
// alternate signal stack. A fault elsewhere goes to the handler that was installed before the
// runtime's.
#pragma once

#include "sched/core/m.h"

namespace magpie::sched {

// Once per run(): install takes over SIGSEGV and SIGBUS, remove gives them back.
void install_overflow_handler();
void remove_overflow_handler();

// Once per thread: an alternate signal stack, unless the thread has one.
void open_signal_stack(M* m);
void close_signal_stack(M* m);

}  // namespace magpie::sched
