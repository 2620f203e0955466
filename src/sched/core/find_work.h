// find_work.h: which goroutine does an M run next? The policy, as a list.
//
//   1  the world stops: the M gives its P up and sleeps
//   2  timers of the own P that are due
//   3  every 61st tick, a look at everything else: it takes a few goroutines into the P's inbox, from each line of
//      the global queue and from the network. While the inbox holds some, every second turn is its
//   4  runnext, for as long as the turn of its waker lasts
//   5  the own ring, oldest first
//   6  the inbox
//   7  a fair share of the global queue: stopped goroutines that are due, urgent ones, usual ones
//   8  the network, without blocking
//   9  a search, unless enough other Ms search: timers of all Ps that are due; half of another P's ring, in random
//      order, four rounds, in the last one also another P's runnext; again for as long as that has paid lately
//  10  rest: give the P up, look at everything once more, sleep (rest.h)
//
// Steps 3 to 6 are at hand: a goroutine that blocks tries them on its own stack, and switches straight to what it
// finds (next_at_hand). Why no goroutine waits for ever: docs/fairness.md.
#pragma once

#include "sched/core/m.h"

namespace magpie::sched {

// All steps; sleeps until there is something. m holds a P before and after, maybe another one.
// Null: the runtime ends.
G* find_work(M* m);

// Steps 3 to 6. Null: nothing is at hand, or the loop is wanted.
G* next_at_hand(M* m);

// The world stops, or timers are due: a goroutine that can should switch to the loop.
bool loop_is_wanted(M* m);

}  // namespace magpie::sched
