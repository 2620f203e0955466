// bound.h: goroutines that stay on their thread, and threads that wait for a P.
//
// A goroutine is bound to its thread while a ThreadLock lives, and while it is preempted. A
// preempted goroutine's whole thread sleeps where it was, in a signal handler, and everything that
// belongs to the thread stays as it is. A bound goroutine that is ready is in the queues like any
// other. The M that takes it out passes its P to the goroutine's thread and sleeps in its place.
//
// Protocol  [in-place]
//
//   thread of g:    lock;  the runtime ends? -> leave for good;  waits = true;  unlock;
//                   g -> queue;   sleep
//   M that meets g: lock;  waits? -> false, handed = P;  unlock;  wake it;
//                   sleep on the list of idle threads
//   the valve:      lock;  waits? -> false, let_out;     unlock;  wake it       (valve.h)
//   the end:        lock;  for every M that waits in place -> false, handed = null;  wake it
//                                                                              (World::shut_down)
//   successor:      sysmon:  hands the P of m to another M;  names it m's successor
//                   m as it stops, and sysmon later or at the end:  take the successor;  wake it
//
// Once      The flag goes down once, under Idle's lock. So exactly one of the three wakes the
//           thread.
// Ending    A goroutine whose thread leaves stays bound, and its record still names the thread. An
//           M that takes it out of a queue after that finds a thread that no longer waits, and
//           leaves too. The goroutine's commit step runs all the same, as it releases what the
//           goroutine holds.
// Successor m and sysmon take it by an exchange, so it is woken once. m may look before sysmon has
//           named it. So sysmon looks again, also when the runtime ends: a successor is on no list,
//           and no other thread would wake it.
// Lifetime  Ms stay until the runtime is gone. So an M that read g->thread may look at it.
// Proof     tests/model/in_place_model.cc
#pragma once

#include "sched/core/m.h"

namespace magpie::sched {

// For an M without a P whose goroutine continues on this thread. Puts the goroutine in a queue and
// sleeps until another M passes a P. False: the runtime ends, and the M has no P.
enum class Line { urgent, stopped };
[[nodiscard]] bool wait_in_place(M* m, Line line);

// m took the bound g from a queue. Returns when m has another P. False: the runtime ends.
[[nodiscard]] bool pass_p_to_thread_of(M* m, G* g);

// Hands p to the thread of a bound goroutine, and returns that M, which the caller wakes. The
// caller has p, and took g from a queue. Null: the runtime ends.
[[nodiscard]] M* hand_p_to_thread_of(P* p, G* g);

// The valve (valve.h) took g from the stopped line. Its thread continues without a P.
void let_out(G* g);

// A bound goroutine parks or yields: the thread gives its P up and waits in place.
void park_bound(M* m, G* g, Commit commit, void* argument);
void yield_bound(M* m, G* g);

// A bound goroutine has ended. Its thread ends too, unless it is the thread that called run().
void end_bound(M* m);

// The goroutine that ends here keeps no ThreadLock.
void end_thread_locks(M* m);

// Takes a bound goroutine from the global queue, which brings its own thread; or null.
G* take_bound();

}  // namespace magpie::sched
