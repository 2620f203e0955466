// free_cpu.h: the thread that gets the P of a stopping thread continues on the CPU that becomes
// free.
//
// The kernel wakes a thread where it last ran, or where its waker runs. While every CPU is busy it
// does not look for an idle one (measured on 6.18). The CPU that becomes idle a moment later does
// not pull a thread that has just run elsewhere: such a thread is "hot" for half a millisecond. So
// the woken thread would drive another goroutine off its CPU, while the CPU meant for it stays
// idle. That would cost most of a millisecond for each goroutine that is preempted. Therefore the
// thread that stops writes its CPU down in the P. The thread that begins to run a goroutine with
// that P moves to this CPU, and may use all its CPUs again at once. This is done only if there are
// at least as many Ps as CPUs. Otherwise the kernel has idle CPUs to choose from.
#pragma once

#include "sched/core/m.h"

namespace magpie::sched {

inline constexpr int kAnyCpu = -1;

// The CPU that the calling thread is on.
int this_cpu();

// m's thread calls this when it holds m->p, before it runs a goroutine with it.
void move_to_free_cpu(M* m);
inline void use_free_cpu(M* m) {
  if (m->p->free_cpu != kAnyCpu) [[unlikely]]
    move_to_free_cpu(m);
}

}  // namespace magpie::sched
