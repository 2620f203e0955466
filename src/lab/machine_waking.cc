// machine_waking.cc: what searchers see, and which idle P a publisher wakes.
#include "lab/machine.h"

#include <algorithm>
#include <utility>

namespace magpie::lab {

namespace rules = sched::policy;

void Machine::changed(std::uint32_t p) {
  Proc& proc = procs_[p];
  const std::uint64_t size = proc.ring.size();
  waiting_[p] = static_cast<std::uint32_t>(size);
  std::int64_t shown = size >= setup_.policy.least ? static_cast<std::int64_t>(size) : 0;
  if (proc.runnext != kNoTask && setup_.policy.runnext != Runnext::never) ++shown;
  const std::int64_t by = shown - std::exchange(proc.shown, shown);
  if (by != 0) make_visible(by);
}

void Machine::make_visible(std::int64_t by) {
  visible_ += by;
  if (by <= 0 || spinners_.empty()) return;
  for (const std::uint32_t p : std::exchange(spinners_, {})) {
    const Ns until_it_looks =
        static_cast<Ns>(uniform() * static_cast<double>(setup_.costs.spin_round));
    go_on(p, Activity::sees_work, until_it_looks);
  }
}

void Machine::set_idle(std::uint32_t p) {
  idle_.push_back(p);
  idle_mask_.set(p);
}

void Machine::take_idle(std::uint32_t p) {
  idle_.erase(std::find(idle_.begin(), idle_.end(), p));
  idle_mask_.clear(p);
}

// A searcher is booked for an idle P: a P near the waker, else the P that rested last.
std::uint32_t Machine::start_idle(std::uint32_t waker, Ns after) {
  std::uint32_t p = sched::kNoP;
  if (waker != kNobody && setup_.policy.order == Order::rings && !setup_.topology.is_flat())
    p = sched::idle_near(setup_.topology.home_of(waker, setup_.procs), waker, idle_mask_);
  if (p == sched::kNoP) p = idle_.back();
  take_idle(p);
  ++searching_;
  Proc& proc = procs_[p];
  proc.is_searching = true;
  proc.since = now_ + after;
  go_on(p, Activity::waking, after);
  return p;
}

void Machine::wake_searcher(std::uint32_t waker, Ns& cost) {
  if (!setup_.policy.wakes) return;
  const bool needs = setup_.policy.throttles ? rules::needs_searcher(view()) : !idle_.empty();
  if (!needs) return;
  ++result_.wakes;
  if (waker != kNobody) {
    cost += setup_.costs.wake_call;
    procs_[waker].waking_until = now_ + cost;
  }
  start_idle(waker, setup_.costs.wake);
}

}  // namespace magpie::lab
