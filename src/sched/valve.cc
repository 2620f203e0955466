#include "sched/valve.h"

#include "base/check.h"
#include "base/other_thread.h"
#include "sched/bound.h"
#include "sched/runtime.h"

namespace magpie::sched {

// Asking the kernel takes a while, in which the thread may leave, or begin a sleep of the runtime's own.
bool sleeps_for_others(const M& m, bool (*is_asleep)(pid_t thread)) {
  std::uint32_t own_sleeps = m.own_sleeps.load(base::relaxed);
  bool sleeps_by_itself = own_sleeps % 2 != 0;
  return m.grip.is_inside() && !sleeps_by_itself && is_asleep(m.tid.load(base::relaxed)) &&
         m.grip.is_inside() && m.own_sleeps.load(base::relaxed) == own_sleeps;
}

void Valve::look_at(Runtime& rt, M* m, std::int64_t still_ns) {
  bool may_be_knot = still_ns >= kKnotNs && (open_ || rt.global.held() != 0);
  if (may_be_knot && sleeps_for_others(*m, base::is_asleep_in_kernel)) knot_seen_ = true;
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
