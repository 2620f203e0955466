// slice.h: a goroutine gives way when its time slice is over, if it starts others without pause or
// runs them in place by joining them.
//
// The clock is read once per spill, which is once per about 128 goroutines started, and once per
// few goroutines run in place. The slice begins at the first reading of a turn. Without this, a
// goroutine that starts a million others would keep a million records live at once, and the others
// would wait for it to end. Sysmon ends the slice earlier if something urgent or woken waits, as it
// does for a goroutine that computes. Without Options::preempt only a joiner gives way: it has to
// expect to wait.
#pragma once

#include "base/clock.h"
#include "sched/core/p.h"
#include "sched/run/runtime.h"

namespace magpie::sched {

inline void look_at_slice(P* p) {
  std::int64_t now = base::now_ns();
  std::uint64_t turn = p->turns_begun();
  if (p->slice_turn != turn) {
    p->slice_turn = turn;
    p->slice_since_ns = now;
  } else if (now - p->slice_since_ns >
             std::chrono::nanoseconds(runtime->options.time_slice).count()) {
    p->slice_over = true;
  }
}

}  // namespace magpie::sched
