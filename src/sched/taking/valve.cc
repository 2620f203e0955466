#include "sched/taking/valve.h"

#include "base/check.h"
#include "base/other_thread.h"
#include "sched/run/runtime.h"
#include "sched/taking/bound.h"

namespace magpie::sched {

// Asking the kernel takes a while. Meanwhile the thread may leave the runtime, or begin a sleep of
// the runtime's own. So both are checked again.
bool sleeps_for_others(const M& m, bool (*is_asleep)(pid_t thread)) {
  std::uint32_t own_sleeps = m.own_sleeps.load(base::relaxed);
  bool sleeps_by_itself = own_sleeps % 2 != 0;
  return m.grip.is_inside() && !sleeps_by_itself && is_asleep(m.os.tid.load(base::relaxed)) &&
         m.grip.is_inside() && m.own_sleeps.load(base::relaxed) == own_sleeps;
}

void Valve::look_at(M* m, std::int64_t still_ns) {
  bool may_be_knot = still_ns >= kKnotNs && (open_ || runtime->global.stopped() != 0);
  if (!may_be_knot) return;
  constexpr auto kIsNotTold = [](pid_t thread) {
    return base::doing_of(thread) == base::Doing::not_told;
  };
  if (sleeps_for_others(*m, base::is_asleep_lightly)) knot_seen_ = true;
  if (still_ns >= kUnseenKnotNs && sleeps_for_others(*m, kIsNotTold)) knot_seen_ = true;
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
