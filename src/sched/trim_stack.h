// trim_stack.h: a goroutine that will wait for long keeps one or two pages of its stack, however
// deep it has been.
#pragma once

#include <magpie/detail/api.h>

namespace magpie::sched {

// Gives the memory below the caller's frame back to the system. That costs a system call, and page
// faults when the memory is needed again. On a plain thread it does nothing. It never blocks.
MAGPIE_API void trim_stack() noexcept;

}  // namespace magpie::sched
