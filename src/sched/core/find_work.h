// find_work.h: which goroutine does an M run next? The policy, as a list.
//
//   1. the world stops: leave
//   2. due timers of the own P
//   3. every 61st tick: a look at everything else, which takes a few into the inbox: from each line of the global queue, and
//      from the network. While the inbox holds some, every second turn is its
//   4. runnext, for as long as the turn of its waker lasts
//   5. own ring
//   6. a fair share of the global queue
//   7. the network
//   8. due timers of others; half of another P's ring, random victims, four rounds; in the last round also a runnext
//   9. search on for a while if that has paid lately
//  10. give the P up, look at everything once more, sleep
//
// 3 to 5 are at hand (next_at_hand): a goroutine that blocks tries them on its own stack before it leaves, and switches
// straight to what it finds. Why nobody waits for ever: docs/fairness.md.
#pragma once

#include <cstdint>

#include "sched/core/m.h"

namespace magpie::sched {

// Turns of all Ps so far: while this stands still, nothing new has run.
std::uint64_t all_turns();

// Something can be taken from a queue, as far as can be seen without locks.
bool work_is_visible();

// [search-or-sleep] [timer-duty] By one who gave a P or a thread back and does not go to sleep himself: what was left to that one,
// or was out of sight meanwhile, is found by another.
void look_again_for_others();

// The world stops, or there is housekeeping: a goroutine that can should leave for the loop.
bool loop_is_wanted(M* m);

// Steps 1 and 3 to 5. Null: nothing at hand, or the loop is wanted.
G* next_at_hand(M* m);

// All of them; sleeps until there is something. The M holds a P before and after, maybe another one.
// Null: the runtime ends.
G* find_work(M* m);

}  // namespace magpie::sched
