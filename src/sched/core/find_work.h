// find_work.h: which goroutine does an M run next? The policy, as a list.
//
//   1  the world stops: the M gives its P up and sleeps
//   2  timers of its own P that are due
//   3  every 61st tick, a look at everything else: the M takes a few goroutines into the P's inbox,
//      from each line of the global queue and from the network. While the inbox holds some, the
//      inbox has every second turn
//   4  runnext, for as long as the turn of its waker lasts
//   5  its own ring, oldest first
//   6  the inbox
//   7  a fair share of the global queue: stopped goroutines that are due, urgent ones, usual ones
//   8  the network, without blocking
//   9  a search, unless enough other Ms search: timers of all Ps that are due; half of another P's
//      ring, near ones first (victims.h), four rounds, in the last one also another P's runnext.
//      The M repeats the search for as long as searching has paid lately
//  10  rest: the M gives its P up, looks at everything once more, and sleeps (rest.h)
//
// The P has steps 3 to 6 at hand. A goroutine that blocks tries them on its own stack, and switches
// straight to the goroutine that it finds (next_at_hand). Why no goroutine waits for ever:
// docs/fairness.md.
#pragma once

#include "sched/core/m.h"

namespace magpie::sched {

// Tries all steps, and sleeps until there is a goroutine. m holds a P before and after, maybe
// another one. Null: the runtime ends.
G* find_work(M* m);

// Tries steps 3 to 6. Null: nothing is at hand, or the loop is wanted.
G* next_at_hand(M* m);

// The world stops, or timers are due. A goroutine that can should switch to the loop.
bool loop_is_wanted(M* m);

}  // namespace magpie::sched
