// taking.h: sysmon takes a P from an M that does not use it, and hands it to a thread that will.
//
//   choose    the heir: a thread that sleeps, or a stopped or bound goroutine, which brings its own
//             thread
//   take      [grip] fails if the M came back meanwhile; then sysmon puts the heir back
//   hand over the chosen thread has the P, and has still to be woken
//
// Sysmon only. Nothing here allocates.
#pragma once

#include "sched/core/m.h"

namespace magpie::sched {

// [grip] False: the M has come back, or no longer holds p.
[[nodiscard]] bool take_from(M* m, P* p, trace::Why why);

// One of the three, or nobody.
struct Heir {
  M* thread = nullptr;   // taken off the list of sleeping threads
  G* stopped = nullptr;  // taken out of the stopped line; its thread waits with it
  G* bound = nullptr;    // the same from any line: it may wait because of a ThreadLock
  bool is_nobody() const { return thread == nullptr && stopped == nullptr && bound == nullptr; }
};

Heir choose_sleeping_thread(const P* p);
Heir choose_stopped();
Heir choose_bound();

// The heir does not get a P after all.
void put_back(Heir heir);

// The caller has p. Returns the M that has it now, which the caller wakes. Null: the runtime ends.
[[nodiscard]] M* hand_over(P* p, Heir heir);

}  // namespace magpie::sched
