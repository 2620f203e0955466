// bound.h: goroutines that stay on their thread, and threads that wait for a P.
//
// A goroutine is bound to its thread while a ThreadLock lives, and while it is preempted: then the whole thread sleeps
// where it was, in a signal handler, and everything that belongs to the thread stays as it is. A bound goroutine
// that is ready is in the queues like any other. Whoever takes it out passes its P to the goroutine's thread and sleeps in
// its place.
//
// Protocol  [in-place]
//
//   thread of g:    lock;  the runtime ends? -> leave for good;  waits_in_place = true;  unlock;   g -> queue;   sleep
//   M that meets g: lock;  waits_in_place? -> false, handed = P;  unlock;  wake it;  sleep on the list of idle threads
//   the valve:      lock;  waits_in_place? -> false, let_out;     unlock;  wake it                 (sysmon.h)
//   the end:        lock;  for every M that waits in place -> false, handed = null;  wake it       (World::shut_down)
//   successor:      sysmon:  hands the P of m to another;  m's successor = that one
//                   m as it stops, and sysmon later or at the end:  take the successor out;  wake it
//
// Once      The flag goes down once, under Idle's lock. So exactly one of the three wakes the thread.
// Ending    A goroutine whose thread leaves stays bound, and its record goes on to name the thread: an M that takes it out
//           of a queue after that finds a thread that waits no more, and leaves too. Its commit step is run all the same,
//           as it releases what the goroutine holds.
// Successor Taken out by an exchange, so woken once. m may look before sysmon has said it; sysmon looks again, also when the
//           runtime ends: a successor is on no list, and nobody else would wake it.
// Lifetime  Ms stay until the runtime is gone, so whoever read g->thread may look at it.
// Proof     tests/model/in_place_model.cc
#pragma once

#include "sched/core/m.h"

namespace magpie::sched {

// For an M without a P whose goroutine is to go on here: puts it in a queue and sleeps until somebody passes a P.
// False: the runtime ends; the M has no P.
enum class Line { urgent, stopped };
[[nodiscard]] bool wait_in_place(M* m, Line line);

// m took the bound g from a queue. Returns when m has another P; false: the runtime ends.
[[nodiscard]] bool pass_p_to_thread_of(M* m, G* g);

// Hands p to the thread of a bound goroutine, and returns that: the caller wakes it. The caller has p, and took g from a
// queue. Null: the runtime ends.
[[nodiscard]] M* hand_p_to_thread_of(P* p, G* g);

// The valve (sysmon.h): the thread of g, which was taken from the stopped line, goes on without a P.
void let_out(G* g);

// Parking and yielding of a bound goroutine: the thread gives its P up and waits in place.
void park_bound(M* m, G* g, Commit commit, void* argument);
void yield_bound(M* m, G* g);

// A goroutine that was bound has ended, and with it its thread, unless that is the one that called run().
void end_bound(M* m);

// A bound goroutine of the global queue, which brings its own thread; or null.
G* take_bound();

}  // namespace magpie::sched
