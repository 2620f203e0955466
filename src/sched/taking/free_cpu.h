// free_cpu.h: whoever gets the P of a thread that stops goes on, on the CPU that this thread leaves.
//
// The kernel wakes a thread where it last ran, or where its waker runs. While every CPU is busy it does not look for an idle one
// (measured on 6.18), and the CPU that becomes idle a moment later does not take over what has just run elsewhere: it is
// "hot" for half a millisecond. So the woken thread would drive another goroutine off its CPU, while the one that was
// meant for it stays idle: most of a millisecond for each goroutine that is preempted. The thread that stops therefore writes
// its CPU down in the P, and who begins to run a goroutine with that P moves there. It may use all its CPUs again at
// once. Only if there are as many Ps as CPUs; else the kernel has idle ones to choose from.
#pragma once

#include "sched/core/m.h"

namespace magpie::sched {

inline constexpr int kAnyCpu = -1;

// The one that the calling thread is on.
int this_cpu();

// For the holder of m->p, m's thread, before it runs a goroutine with it.
void move_to_free_cpu(M* m);
inline void use_free_cpu(M* m) {
  if (m->p->free_cpu != kAnyCpu) [[unlikely]]
    move_to_free_cpu(m);
}

}  // namespace magpie::sched
