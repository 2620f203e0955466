#include "sched/taking/valve.h"

#include "base/check.h"
#include "base/other_thread.h"
#include "sched/run/runtime.h"
#include "sched/taking/bound.h"

namespace magpie::sched {

void Valve::look_at(M* m, std::int64_t still_ns) {
  bool may_be_knot = still_ns >= kKnotNs && m->grip.is_inside() &&
                     !m->in_own_sleep.load(base::relaxed) &&
                     (open_ || runtime->global.stopped() != 0);
  if (may_be_knot && base::is_asleep_in_kernel(m->os.tid.load(base::relaxed))) knot_seen_ = true;
}

bool Valve::act() {
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
  if (G* g = runtime->global.pop_stopped()) let_out(g);
  return true;
}

}  // namespace magpie::sched
