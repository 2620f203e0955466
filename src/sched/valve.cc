#include "sched/valve.h"

#include "base/check.h"
#include "base/other_thread.h"
#include "sched/bound.h"
#include "sched/runtime.h"

namespace magpie::sched {

void Valve::look_at(Runtime& rt, M* m, std::int64_t still_ns) {
  bool may_be_knot = still_ns >= kKnotNs && m->grip.is_inside() &&
                     !m->in_own_sleep.load(base::relaxed) && (open_ || rt.global.held() != 0);
  if (may_be_knot && base::is_asleep_lightly(m->tid.load(base::relaxed))) knot_seen_ = true;
}

bool Valve::act(Runtime& rt) {
  bool was_open = open_;
  open_ = knot_seen_;
  knot_seen_ = false;
  if (!open_) return false;
  if (!was_open) {
    if (openings_.read() == 0)
      base::warn(
          "a thread waits inside the runtime for a lock that a stopped goroutine may hold; stopped "
          "goroutines run on until it has it. Please report what your program called");
    openings_.increment();
  }
  if (G* g = rt.global.pop_held()) let_out(rt, g);
  return true;
}

}  // namespace magpie::sched
