// rest.h: an M that found no work gives its P up and sleeps. Nobody sleeps while there is work.
//
//   lie down            P and M go on the lists of Idle, under its lock
//   look once more      at every queue and every timer: was work published? -> get up and search
//   sleep               one M sleeps in the poller until there are events; one M, the same or
//                       another, has the timer duty and sleeps until the earliest timer; all others
//                       sleep until another thread hands them a P
//
// Why no wake-up is lost: [search-or-sleep] (search.h), [timer-duty] (timer_duty.h), [poll-role]
// (poll_role.h).
#pragma once

#include <cstdint>

#include "sched/core/m.h"

namespace magpie::sched {

// Gives m's P up and sleeps until there is work. True: m has a P again; it may not have slept.
// False: the runtime ends, or m's thread does.
[[nodiscard]] bool rest(M* m);

// [search-or-sleep] [timer-duty] Call this after giving up a P or a thread without resting. It
// looks at all queues, timers and the network again, and wakes a searcher for work that was
// published meanwhile.
void look_again_for_others();

// Call this before a thread that holds no P goes to sleep: it may be the last one that was awake.
void report_if_deadlock();

// The same for a thread that ends. It cannot look itself, as it is no longer counted as one of the
// runtime's threads. So another M gets up, finds nothing to do, and looks.
void let_another_look_for_deadlock();

// A queue holds a goroutine that can be taken, as far as can be seen without locks.
bool work_is_visible();

// A P whose queue holds such a goroutine; null: there is none among the first `most` that are not
// idle. The look begins at P `start`, or modulo their number, and goes round.
inline constexpr std::uint32_t kAllPs = ~std::uint32_t{0};
P* find_visible_work(std::uint32_t start, std::uint32_t most);

// The turns of all Ps so far. While this stands still, nothing new has run.
std::uint64_t all_turns();

}  // namespace magpie::sched
