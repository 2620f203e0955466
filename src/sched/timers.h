// timers.h: timers in the scheduler: the door to arm them, and how Ms fire them.
//
// Each P has a set of timers. Its holder looks at them first whenever it looks for work, and now and then
// between goroutines that come and go quickly. An M that has nothing else to do fires those of others. When all
// sleep, one of them sleeps until the earliest, see watch.h.
#pragma once

#include <cstdint>

#include "sched/g.h"
#include "sched/m.h"
#include "sched/p.h"
#include "timer/timer.h"
#include "timer/timer_set.h"

namespace magpie::sched {

struct Runtime;

using timer::kNever;
using timer::Timer;

// ---- the door

// From any thread. False: the caller is a plain thread and no runtime runs. A timer's fire returns the G it made
// ready, in state waiting, or null; it may ready others itself.
[[nodiscard]] bool arm(Timer& timer, std::int64_t when_ns);

// From any thread, by the timer's owner. Does not wait for a fire that has begun; see [timer].
timer::TimerSet::Removal disarm(Timer& timer);

// The same, and waits, briefly, until nobody touches the record any more. No lock that fire takes may be held.
void disarm_and_settle(Timer& timer);

// By fire or drop, of a timer that has no owner any more, as its last touch: its free is called by a goroutine that calls
// drop_abandoned(), or as the runtime ends.
void abandon(Timer& timer);
void drop_abandoned();

// In the child of a fork(): nobody will fire them, and disarm() lets go of them.
void forget_timers(Runtime& rt);

// For a goroutine that parks at once: arms, and keeps the set locked until the commit step releases it.
void arm_and_hold(M* m, Timer& timer, std::int64_t when_ns);
void release_held_timers(M* m);

// ---- for the scheduler

// Fires what is due in the set; returns one goroutine that became ready, or null. More of them are in m's queue.
G* fire_due(Runtime& rt, M* m, timer::TimerSet& timers, std::int64_t now_ns);

// The holder's own.
inline bool has_timers(const P* p) { return p->timers.earliest_ns() != kNever; }
G* fire_own(Runtime& rt, M* m);
G* fire_others(Runtime& rt, M* m);

// Between goroutines, only if has_timers(): reads the exact clock every few times, else a cheap one.
bool own_timers_are_due(P* p);

std::int64_t earliest_timer_ns(const Runtime& rt);

// [watch] the armer's part.
void watch_over(Runtime& rt, M* m, std::int64_t when_ns);
inline void pay_watch(Runtime& rt, M* m) {
  if (m->watch_owed_ns != kNever) [[unlikely]]
    watch_over(rt, m, m->watch_owed_ns);
}

// The runtime ends, no M is left: forgets all timers.
void drop_timers(Runtime& rt);

}  // namespace magpie::sched
