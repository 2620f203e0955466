// other_thread.h: what another thread of this process does, found out without its help. Nothing
// here allocates or takes a lock.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace magpie::base {

// CPU time that the thread has used so far; 0 if it has ended.
std::int64_t cpu_ns_of(pid_t thread);

// What a thread does, as a file of the kernel's tells. The file cannot be read where there is no
// /proc, and while the process has no descriptor left.
enum class Doing {
  runs,           // or waits for a CPU
  sleeps,         // for something that user code may end, such as a lock, in futex()
  sleeps_deeply,  // only the kernel itself ends it: for a page, or the lock of the address space
  not_told
};
Doing doing_of(pid_t thread);

// Whether the thread waits for something other than a CPU. If the kernel does not tell, its CPU
// clock does, read twice: a thread that did not run in between is taken to be asleep, though it may
// wait for a CPU. That takes some 50 microseconds.
bool is_asleep_in_kernel(pid_t thread);

// The same, except for a deep sleep. If the kernel does not tell, the answer is no.
bool is_asleep_lightly(pid_t thread);

// The futex at which the thread sleeps, as those do that wait for a lock of user code; 0: none, or
// the kernel does not tell. Condition variables and waits with a time use another form of futex(),
// which does not count.
std::uintptr_t lock_waited_for(pid_t thread);

// How often the thread has gone to sleep in the kernel so far, of its own will; -1: not told.
std::int64_t sleeps_of(pid_t thread);

}  // namespace magpie::base
