// trim_stack.h: a goroutine that will wait for long keeps one page of its stack or two, however deep it has been.
#pragma once

namespace magpie::sched {

// Gives the memory below the caller's frame back to the system: a system call, and page faults when it is needed again.
// On a plain thread: does nothing. Never blocks.
void trim_stack() noexcept;

}  // namespace magpie::sched
