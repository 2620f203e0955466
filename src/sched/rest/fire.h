// fire.h: how Ms fire timers that are due.
//
// Each P has a set of timers. Its holder looks at them first whenever it looks for work, and now and then
// between goroutines that come and go quickly. An M that has nothing else to do fires those of others. When all
// sleep, one of them sleeps until the earliest, see timer_duty.h.
#pragma once

#include <cstdint>

#include "sched/core/g.h"
#include "sched/core/m.h"
#include "sched/core/p.h"
#include "timer/timer_set.h"

namespace magpie::sched {

using timer::kNever;

// Fires what is due in the set; returns one goroutine that became ready, or null. More of them are in m's queue.
G* fire_due(M* m, timer::TimerSet& timers, std::int64_t now_ns);

// The holder's own.
inline bool has_timers(const P* p) { return p->timers.earliest_ns() != kNever; }
G* fire_own(M* m);
G* fire_others(M* m);

// Between goroutines, only if has_timers(): reads the exact clock every few times, else a cheap one.
bool own_timers_are_due(P* p);

std::int64_t earliest_timer_ns();

// [timer-duty] the armer's part.
void see_to_timer(M* m, std::int64_t when_ns);
inline void see_to_owed_timer(M* m) {
  if (m->timer_owed_ns != kNever) [[unlikely]]
    see_to_timer(m, m->timer_owed_ns);
}

}  // namespace magpie::sched
