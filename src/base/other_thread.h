// other_thread.h: what another thread of this process does, found out without its help. Nothing
// here allocates or takes a lock.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace magpie::base {

// CPU time that the thread has used so far; 0 if it has ended.
std::int64_t cpu_ns_of(pid_t thread);

// Whether the thread waits for something other than a CPU. Reads a file of the kernel's: ask only
// about a thread that used hardly any CPU. Where there is no /proc the answer is yes.
bool is_asleep_in_kernel(pid_t thread);

// The same, except for a wait that only the kernel itself ends: for a page, or for the lock of the
// address space. A thread that waits for a lock of user code, in futex(), is asleep lightly.
bool is_asleep_lightly(pid_t thread);

// How often the thread has gone to sleep in the kernel so far, of its own will; 0 where there is no
// /proc.
std::int64_t sleeps_of(pid_t thread);

}  // namespace magpie::base
