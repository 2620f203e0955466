// machine.cc: events and CPUs.
#include "lab/machine.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace magpie::lab {

namespace rules = sched::policy;

double Result::steals_per_second() const {
  return time == 0 ? 0 : static_cast<double>(steals) * 1e9 / static_cast<double>(time);
}
double Result::mean_wait() const {
  return latency.count() == 0 ? 0 : waits / static_cast<double>(latency.count());
}
double Result::fairness() const {
  const double n = static_cast<double>(latency.count());
  return squared_waits == 0 ? 1 : waits * waits / (n * squared_waits);
}
double Result::cost_per_turn() const {
  return turns == 0 ? 0 : static_cast<double>(scheduling + searching) / static_cast<double>(turns);
}
double Result::searching_share() const {
  const Ns all = computing + scheduling + searching;
  return all == 0 ? 0 : static_cast<double>(searching) / static_cast<double>(all);
}

Machine::Machine(const Setup& setup, Load& load)
    : setup_(setup),
      load_(load),
      random_(setup.seed),
      procs_(setup.procs),
      waiting_(setup.procs),
      shards_(setup.topology.node_of(setup.procs - 1) + 1) {
  if (setup_.cpus == 0 || setup_.cpus > setup_.procs) setup_.cpus = setup_.procs;
  cpus_left_ = setup_.cpus;
  for (std::uint32_t p = setup_.procs; p-- > 0;) {
    procs_[p].victims =
        make_victims(setup_.policy, p, setup_.procs, setup_.topology, idle_mask_, waiting_);
    procs_[p].budget = setup_.policy.budget_after(false, rules::kSpinLeast);
    procs_[p].ticks_to_look = setup_.policy.look_every;
    procs_[p].turns_to_clock = rules::kTurnsPerClock;
    set_idle(p);
  }
}

double Machine::uniform() { return (static_cast<double>(random_.next()) + 0.5) / 4294967296.0; }
Ns Machine::exponential(double mean) {
  return static_cast<Ns>(std::llround(-mean * std::log(uniform())));
}

TaskId Machine::make() {
  ++alive_;
  if (free_.empty()) {
    tasks_.emplace_back();
    return static_cast<TaskId>(tasks_.size() - 1);
  }
  const TaskId task = free_.back();
  free_.pop_back();
  tasks_[task] = Task{};
  return task;
}

// ---- events

void Machine::push(Ns time, std::uint32_t p, std::uint32_t epoch, std::uint64_t number) {
  events_.push_back({time, order_++, p, epoch, number});
  std::push_heap(events_.begin(), events_.end());
}

void Machine::go_on(std::uint32_t p, Activity activity, Ns cost) {
  Proc& proc = procs_[p];
  proc.activity = activity;
  if (!proc.is_searching) result_.scheduling += cost;
  push(now_ + cost, p, ++proc.epoch, 0);
}

void Machine::call_at(Ns time, std::uint64_t number) {
  ++calls_;
  push(time, kCall, 0, number);
}

Result Machine::run() {
  load_.begin(*this);
  while (setup_.all_awake && !idle_.empty()) start_idle(kNobody, 0);
  while (!events_.empty()) {
    std::pop_heap(events_.begin(), events_.end());
    const Event event = events_.back();
    events_.pop_back();
    if (setup_.until != 0 && event.time > setup_.until) {
      now_ = setup_.until;
      break;
    }
    if (event.p == kCall) {
      now_ = event.time;
      --calls_;
      load_.called(*this, event.number);
    } else if (event.p == kTimer) {
      now_ = event.time;
      timer_due();
    } else if (procs_[event.p].epoch == event.epoch) {
      if (alive_ == 0 && calls_ == 0) break;  // only searchers are left
      now_ = event.time;
      step_of(event.p);
    }
  }
  result_.time = setup_.until != 0 ? now_ : result_.time;
  return std::move(result_);
}

void Machine::step_of(std::uint32_t p) {
  if (!take_cpu(p)) return;
  Proc& proc = procs_[p];
  switch (proc.activity) {
    case Activity::idle:
      return;
    case Activity::waking:
      if (std::exchange(proc.has_duty, false)) duty_is_taken_ = false;
      [[fallthrough]];
    case Activity::begins:
      return find(p);
    case Activity::acts:
      return act(p);
    case Activity::rounds:
      return go_round(p, 0);
    case Activity::steals:
      return try_steal(p);
    case Activity::waits:
      return try_runnext(p);
    case Activity::spins:
      proc.budget = setup_.policy.budget_after(false, proc.budget);
      end_spin(p);
      return rest(p, 0);
    case Activity::sees_work:
      proc.budget = setup_.policy.budget_after(true, proc.budget);
      return find(p);
  }
}

// ---- CPUs: the kernel lets Ps take turns of a slice each

bool Machine::take_cpu(std::uint32_t p) {
  if (setup_.cpus == setup_.procs) return true;
  Proc& proc = procs_[p];
  if (proc.has_cpu) {
    if (wait_for_cpu_.empty() || now_ - proc.cpu_since < setup_.cpu_slice) return true;
    give_cpu(p);
    wait_for_cpu_.push(p);
    return false;
  }
  if (cpus_left_ == 0) {
    wait_for_cpu_.push(p);
    return false;
  }
  --cpus_left_;
  proc.has_cpu = true;
  proc.cpu_since = now_;
  return true;
}

void Machine::give_cpu(std::uint32_t p) {
  if (!std::exchange(procs_[p].has_cpu, false)) return;
  if (wait_for_cpu_.empty()) {
    ++cpus_left_;
    return;
  }
  const std::uint32_t next = wait_for_cpu_.pop();
  procs_[next].has_cpu = true;
  procs_[next].cpu_since = now_;
  push(now_, next, procs_[next].epoch, 0);
}

}  // namespace magpie::lab
