// crash.h: the program ends, and says where.
//
// Looking up functions and lines allocates, locks and needs a large stack, and the program may end
// because its heap is broken. So a child process does it: a copy of this one in which only the
// copying thread runs, on a stack of its own. If the child fails or takes long, the stacks are
// printed with modules and offsets, for addr2line.
#pragma once

#include <signal.h>

#include "sched/dump/text.h"

namespace magpie::sched {

// Calls print(out, naming, argument) so that its text goes to stderr. In signal handlers too.
void print_with_symbols(void (*print)(Text& out, Naming naming, const void* argument),
                        const void* argument);

// The calling goroutine, by name and number, and its stack. For a handler: `interrupted` is its
// third argument; null: from the caller's frame on. Once per process.
void report_stack_of_caller(const char* what, const void* interrupted);

// A signal is about to end the program.
void report_fatal_signal(int signal, const siginfo_t* info, const void* interrupted);

}  // namespace magpie::sched
