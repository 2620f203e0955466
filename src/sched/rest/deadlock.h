// deadlock.h: no goroutine can ever run again. The runtime says so instead of hanging in silence.
//
// The last thread that goes to sleep finds this out: all Ps are idle and all queues are empty. A
// thread that waits in place for its bound goroutine (bound.h) may be the last one too. If the last
// thread ends instead, it wakes another one to look. Then only another goroutine, or a thread that
// is not ours, could wake a goroutine that waits. So it is a deadlock if no plain thread has ever
// used this runtime and the process has no threads but ours. A foreign thread that never calls us
// hides a deadlock. A reported deadlock is always real.
#pragma once

#include "base/annotations.h"
#include "sched/rest/idle_lock.h"

namespace magpie::sched {

// As far as the scheduler can tell: can no goroutine run?
[[nodiscard]] bool may_be_deadlock() MAGPIE_REQUIRES(idle_lock());

// Does the process have threads that are not the runtime's? Ask may_be_deadlock() before and again
// after. A thread may wake a goroutine and end in between: it is no longer there, but its visit was
// noted.
[[nodiscard]] bool has_other_threads();

// Acts on Options::on_deadlock.
void report_deadlock();

}  // namespace magpie::sched
