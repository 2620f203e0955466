// machine_searching.cc: a P that has nothing searches, steals, spins and rests.
#include "lab/machine.h"

#include <algorithm>
#include <utility>

namespace magpie::lab {

namespace rules = sched::policy;

void Machine::begin_search(std::uint32_t p, Ns cost) {
  Proc& proc = procs_[p];
  if (!proc.is_searching) {
    const bool may = !setup_.policy.throttles || rules::may_search(view(), setup_.procs);
    if (!may) return rest(p, cost);
    ++searching_;
    result_.scheduling += cost;
    proc.is_searching = true;
    proc.since = now_ + cost;
  }
  ++result_.searches;
  if (timers_ != 0) {
    const std::uint32_t tip = std::exchange(proc.timer_tip, kNoVictim);
    if (tip != kNoVictim)
      if (const TaskId task = take_due_timers(p, tip, cost); task != kNoTask)
        return found(p, task, cost);
    for (std::uint32_t left = std::min(setup_.procs, rules::kTimerLooks); left != 0; --left) {
      const std::uint32_t other = proc.next_timer_look++ % setup_.procs;
      if (const TaskId task = take_due_timers(p, other, cost); task != kNoTask)
        return found(p, task, cost);
    }
  }
  proc.round = 0;
  proc.was_patient = false;
  proc.victims->begin(random_, 0);
  go_round(p, cost);
}

void Machine::go_round(std::uint32_t p, Ns cost) {
  Proc& proc = procs_[p];
  const Costs& costs = setup_.costs;
  const Policy& policy = setup_.policy;
  for (;;) {
    const std::uint32_t victim = proc.victims->next();
    if (victim == kNoVictim) {
      if (++proc.round >= policy.rounds) return spin(p, cost);
      proc.victims->begin(random_, proc.round);
      return go_on(p, Activity::rounds, cost);
    }
    ++result_.probes;
    cost += is_near(p, victim) ? costs.probe_near : costs.probe_far;
    Proc& other = procs_[victim];
    if (!proc.victims->is_worth_it(other.ring.size())) continue;
    proc.victim = victim;
    if (other.ring.size() >= policy.least) {
      const bool was_woken = tasks_[other.ring.front()].was_woken;
      if (!proc.was_patient && was_woken && rules::is_few(other.ring.size())) {
        proc.was_patient = true;
        cost += policy.patience;
      }
      return go_on(p, Activity::steals, cost);
    }
    const bool is_last = rules::looks_at_runnext(proc.round + rules::kStealRounds - policy.rounds);
    const bool looks = policy.runnext == Runnext::at_once || is_last;
    if (policy.runnext != Runnext::never && looks && other.runnext != kNoTask) {
      proc.victim_inherited = other.inherited;
      return go_on(p, Activity::waits,
                   cost + (policy.runnext == Runnext::late ? policy.patience : 0));
    }
  }
}

void Machine::try_steal(std::uint32_t p) {
  Proc& proc = procs_[p];
  Proc& victim = procs_[proc.victim];
  const std::uint64_t waiting = victim.ring.size();
  if (waiting < setup_.policy.least) return go_round(p, 0);
  const std::uint64_t count = std::min(waiting, setup_.policy.to_steal(waiting));
  proc.victims->note_robbed();
  const bool near = is_near(p, proc.victim);
  const bool oldest = setup_.policy.end == End::oldest;
  TaskId mine = oldest ? victim.ring.pop() : victim.ring.pop_back();
  for (std::uint64_t i = 1; i < count; ++i) {
    const TaskId next = oldest ? victim.ring.pop() : victim.ring.pop_back();
    proc.ring.push(oldest ? std::exchange(mine, next) : next);  // it runs the youngest
  }
  changed(proc.victim);
  changed(p);
  ++result_.steals;
  if (!near) ++result_.far_steals;
  if (setup_.topology.are_under_one_cache(p, proc.victim)) ++result_.cache_steals;
  result_.stolen += count;
  Ns cost = near ? setup_.costs.steal_near : setup_.costs.steal_far;
  cost += static_cast<Ns>(count) * kCopy;
  ++proc.ticks;
  found(p, mine, cost);
}

void Machine::try_runnext(std::uint32_t p) {
  Proc& proc = procs_[p];
  Proc& victim = procs_[proc.victim];
  const bool may = setup_.policy.runnext == Runnext::at_once ||
                   rules::may_steal_runnext(victim.inherited != proc.victim_inherited,
                                            victim.waking_until > now_);
  if (!may || victim.runnext == kNoTask) return go_round(p, 0);
  const TaskId task = std::exchange(victim.runnext, kNoTask);
  changed(proc.victim);
  const bool near = is_near(p, proc.victim);
  ++result_.steals;
  if (!near) ++result_.far_steals;
  if (setup_.topology.are_under_one_cache(p, proc.victim)) ++result_.cache_steals;
  ++result_.stolen;
  ++result_.runnext_stolen;
  ++proc.ticks;
  found(p, task, near ? setup_.costs.steal_near : setup_.costs.steal_far);
}

void Machine::spin(std::uint32_t p, Ns cost) {
  Proc& proc = procs_[p];
  if (setup_.policy.spin == Spin::for_ever) {
    proc.round = 0;
    proc.victims->begin(random_, 0);
    return go_on(p, Activity::rounds, cost);
  }
  if (proc.budget == 0) return rest(p, cost);
  if (visible_ > 0) return go_on(p, Activity::sees_work, cost + setup_.costs.spin_round);
  spinners_.push_back(p);
  go_on(p, Activity::spins, cost + static_cast<Ns>(proc.budget) * setup_.costs.spin_round);
}

void Machine::end_spin(std::uint32_t p) {
  const auto at = std::find(spinners_.begin(), spinners_.end(), p);
  if (at != spinners_.end()) spinners_.erase(at);
}

void Machine::rest(std::uint32_t p, Ns cost) {
  Proc& proc = procs_[p];
  if (proc.is_searching) {
    result_.searching += now_ + cost - proc.since;
    --searching_;
    proc.is_searching = false;
  }
  proc.timer_tip = due_timer();
  const bool gets_up = setup_.policy.wakes && (visible_ > 0 || proc.timer_tip != kNoVictim);
  if (gets_up) {  // the second look: it takes the P back, and searches
    ++searching_;
    proc.is_searching = true;
    proc.since = now_ + cost;
    return go_on(p, Activity::begins, cost + setup_.costs.spin_round);
  }
  proc.activity = Activity::idle;
  ++proc.epoch;
  set_idle(p);
  give_cpu(p);
}

void Machine::end_search(std::uint32_t p, Ns& cost) {
  Proc& proc = procs_[p];
  if (!proc.is_searching) return;
  result_.searching += std::max<Ns>(0, now_ + cost - proc.since);
  proc.is_searching = false;
  --searching_;
  cost = 0;
  wake_searcher(p, cost);
}

}  // namespace magpie::lab
