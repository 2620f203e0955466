// find_work.h: which goroutine does an M run next? The policy, as a list.
//
//   1. the world stops: leave          5. a fair share of the global queue
//   2. every 61st tick: one from the   6. half of another P's ring, random victims, four rounds;
//      global queue, lest it starve       in the last round also a runnext
//   3. runnext, if its streak allows   7. search on for a while if that has paid lately
//   4. own ring                        8. give the P up, look at everything once more, sleep
//
// The first four are at hand (next_at_hand): a goroutine that blocks tries them on its own stack before it
// leaves, and switches straight to what it finds.
#pragma once

#include <cstdint>

#include "sched/m.h"

namespace magpie::sched {

struct Runtime;

// A pair that wakes each other through runnext gives way to the ring after so many turns.
inline constexpr std::uint32_t kLongestStreak = 64;

// Something can be taken from a queue, as far as can be seen without locks.
bool work_is_visible(Runtime& rt);

// [search-or-sleep] [watch] By one who gave a P or a thread back and does not go to sleep himself: what was left to that one,
// or was out of sight meanwhile, is found by another.
void look_again_for_others(Runtime& rt);

// The world stops, or there is housekeeping: a goroutine that can should leave for the loop.
bool loop_is_wanted(M* m);

// Steps 1 to 4. Null: nothing at hand, or the loop is wanted.
G* next_at_hand(M* m);

// All of them; sleeps until there is something. The M holds a P before and after, maybe another one.
// Null: the runtime ends.
G* find_work(M* m);

}  // namespace magpie::sched
