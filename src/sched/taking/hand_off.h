// hand_off.h: a P changes hands, between Ms that run, sleep or wait for one.
//
//   an M gives its P up       let_go             a thread takes it for what is queued in it; else
//                                                it is idle, or the stopper of the world has it
//   a P needs a thread        start_thread_for   a sleeping M, else a new thread, else none
//                                                (do_without_thread)
//   an M gets a P             begin_with         everything that comes with it
//   an M has none and sleeps  wait_for_p, sleep_until_handed_a_p; go_on_as_handed begins with the P
//                                                that the M was handed
//   an M's P was taken while  take_idle_p        or it queues its goroutine (entry.cc) or waits
//     its goroutine ran                          with it (bound.h)
//   sysmon took m's P         m's successor      has the P; m's thread wakes it as it stops, or
//                                                sysmon does later
#pragma once

#include "sched/core/m.h"
#include "sched/rest/wake.h"

namespace magpie::sched {

// m gets p, and everything that comes with it.
void begin_with(M* m, P* p);

// The caller gives up p, and no M has it. p goes to a thread for what is queued in it, to the
// stopper of the world, or to the idle list.
void let_go(P* p);

// Runs p on a sleeping or a new thread. The caller holds it and must not touch it afterwards.
void start_thread_for(P* p, Searching searching);

// No thread is to be had for p. Its goroutines go to the global queue. p goes to a bound goroutine
// of that queue, which brings its own thread, or to the idle list.
void do_without_thread(P* p, Searching searching);

// An idle P cannot be used: no thread sleeps that could take it, and new threads are refused.
bool no_thread_comes();

// Moves all goroutines out of the queues of a P that its holder gives up.
void move_queue_to_global(P* p);

// For an M without a P and without a goroutine. Sleeps until another thread hands it a P. False:
// the runtime, or the thread, ends.
[[nodiscard]] bool wait_for_p(M* m);

// The same for an M that is on the list of sleeping Ms already.
[[nodiscard]] bool sleep_until_handed_a_p(M* m);

// Begins with the P that the M was handed, once it is off the list. False: the runtime ends.
[[nodiscard]] bool go_on_as_handed(M* m);

// Sysmon took the M's P while its goroutine ran. Now the M has a P again, or its goroutine is in a
// queue.
void note_back(M* m);

// For such an M: takes an idle P if there is one.
[[nodiscard]] bool take_idle_p(M* m);

// Wakes the M that got the P which sysmon took from m, unless another thread has woken it. The
// woken M continues on the given CPU (free_cpu.h).
void wake_successor(M* m, int cpu);

}  // namespace magpie::sched
