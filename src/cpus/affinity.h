// affinity.h: on which CPUs the kernel may place the calling thread.
//
// The affinity mask is a bit set whose length only the kernel knows: it rejects a buffer that is
// shorter than its own set. The fixed cpu_set_t of libc ends at 1024 CPUs, so on a larger machine
// the plain call fails and a program that ignores the failure would run on one CPU. We start at
// that size and double the buffer until the kernel is content.
//
// The mask belongs to a thread. New threads inherit it, so asking early, from the thread that
// starts the runtime, answers for all of them.

#pragma once

#include <sched.h>

#include <cstddef>
#include <vector>

namespace magpie::cpus {

// Number of CPUs in the affinity mask of the calling thread; at least 1. Any thread may call it.
[[nodiscard]] int affinity_cpus();

// The CPUs themselves, ascending; empty if no mask could be had.
[[nodiscard]] std::vector<int> affinity_list();

// The system call, as a seam for tests: fills `mask` of `bytes` bytes and returns 0, or an errno.
using AffinityCall = int (*)(std::size_t bytes, unsigned long* mask);

// As above, with `call` in place of the kernel. Returns 0 if no mask could be had.
[[nodiscard]] int count_affinity(AffinityCall call);

// Both calls for the calling thread, as a seam for tests. False: the kernel refused.
struct AffinityCalls {
  bool (*get)(cpu_set_t& mask);
  bool (*set)(const cpu_set_t& mask);
};
[[nodiscard]] const AffinityCalls& kernel_affinity_calls();

// The calling thread, which was moved for a while, may use the CPUs of `before` again. If they are
// all that its cpuset has, the thread asks for all CPUs there are: from Linux 6.2 on a thread that
// asked for fewer keeps to them when the cpuset grows later, as that of a container may.
void use_cpus_again(const cpu_set_t& before, const AffinityCalls& calls = kernel_affinity_calls());

}  // namespace magpie::cpus
