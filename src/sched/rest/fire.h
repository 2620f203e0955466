// fire.h: how Ms fire timers that are due.
//
// Each P has a set of timers. Its holder looks at them first whenever it looks for work, and now
// and then between goroutines that come and go quickly. An M that has nothing else to do fires the
// timers of other Ps. A search looks at a few Ps only, so that it does not take longer with more of
// them; before the M sleeps it looks at all (rest.h), and remembers where a timer is due. When all
// Ms sleep, one of them sleeps until the earliest timer, see timer_duty.h.
#pragma once

#include <cstdint>

#include "sched/core/g.h"
#include "sched/core/m.h"
#include "sched/core/p.h"
#include "timer/timer_set.h"

namespace magpie::sched {

using timer::kNever;

// Fires the timers of the set that are due. Returns one goroutine that became ready, or null. The
// others are in the queues of m's P.
G* fire_due(M* m, timer::TimerSet& timers, std::int64_t now_ns);

// The timers of the holder's own P.
inline bool has_timers(const P* p) { return p->timers.earliest_ns() != kNever; }
G* fire_own(M* m);
// Looks where sees_due_timer() saw one, and at policy::kTimerLooks Ps: the next ones each time.
G* fire_others(M* m);
// Looks at all Ps. True: a timer is due, and m's next call of fire_others() begins there.
[[nodiscard]] bool sees_due_timer(M* m);

// Call this between goroutines, only if has_timers(). It reads the exact clock every few times,
// else a cheap one.
bool own_timers_are_due(P* p);

std::int64_t earliest_timer_ns();

// [timer-duty] the armer's part.
void see_to_timer(M* m, std::int64_t when_ns);
inline void see_to_owed_timer(M* m) {
  if (m->timer_owed_ns != kNever) [[unlikely]]
    see_to_timer(m, m->timer_owed_ns);
}

}  // namespace magpie::sched
