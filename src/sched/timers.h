// timers.h: the door to timers: any thread arms and disarms them here.
#pragma once

#include <cstdint>

#include "sched/core/m.h"
#include "timer/timer.h"
#include "timer/timer_set.h"

namespace magpie::sched {

using timer::kNever;
using timer::Timer;

// From any thread. False: the caller is a plain thread and no runtime runs. A timer's fire returns
// the G it made ready, in state waiting, or null. It may ready others itself.
[[nodiscard]] bool arm(Timer& timer, std::int64_t when_ns);

// From any thread; the timer's owner calls this. It does not wait for a fire that has begun; see
// [timer].
timer::TimerSet::Removal disarm(Timer& timer);

// The same, but waits briefly until no other thread touches the record any more. The caller must
// not hold a lock that fire takes.
void disarm_and_wait(Timer& timer);

// fire or drop calls abandon() as its last touch of a timer that has no owner any more. The timer's
// drop is then called once more: by a goroutine that calls drop_abandoned(), or as the runtime
// ends, when no timer is in a set.
void abandon(Timer& timer);
void drop_abandoned();

// In the child of a fork(), also when no runtime ran: no M will fire the timers, and disarm() lets
// go of them.
void forget_timers();

// For a goroutine that parks at once: arms the timer, and keeps the set locked until the commit
// step releases it.
void arm_and_hold(M* m, Timer& timer, std::int64_t when_ns);
void release_held_timers(M* m);

// From now on plain threads may take timers out of sets.
void open_timers();

// The runtime ends, and no M is left: forgets all timers.
void drop_timers();

}  // namespace magpie::sched
