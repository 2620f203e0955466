#include "lab/machine.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace magpie::lab {
namespace {

namespace rules = sched::policy;

constexpr Ns kCopy = 1;  // per goroutine that moves
constexpr std::uint32_t kNobody = ~std::uint32_t{0};

}  // namespace

double Result::steals_per_second() const {
  return time == 0 ? 0 : static_cast<double>(steals) * 1e9 / static_cast<double>(time);
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
    : setup_(setup), load_(load), random_(setup.seed), procs_(setup.procs), waiting_(setup.procs) {
  if (setup_.cpus == 0 || setup_.cpus > setup_.procs) setup_.cpus = setup_.procs;
  cpus_left_ = setup_.cpus;
  for (std::uint32_t p = setup_.procs; p-- > 0;) {
    procs_[p].victims =
        make_victims(setup_.policy.order, p, setup_.procs, setup_.topology, idle_mask_, waiting_);
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

void Machine::go_on(std::uint32_t p, Phase phase, Ns cost) {
  Proc& proc = procs_[p];
  proc.phase = phase;
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
  switch (proc.phase) {
    case Phase::idle:
      return;
    case Phase::waking:
      if (std::exchange(proc.has_duty, false)) duty_is_taken_ = false;
      [[fallthrough]];
    case Phase::begins:
      return find(p);
    case Phase::acts:
      return act(p);
    case Phase::rounds:
      return go_round(p, 0);
    case Phase::steals:
      return try_steal(p);
    case Phase::waits:
      return try_runnext(p);
    case Phase::spins:
      proc.budget = setup_.policy.budget_after(false, proc.budget);
      end_spin(p);
      return rest(p, 0);
    case Phase::sees_work:
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

// ---- what searchers see

bool Machine::is_empty(const Proc& proc) const {
  return proc.batch.empty() && proc.ring.empty() && proc.inbox.empty() && proc.runnext == kNoTask;
}

bool Machine::has_room(const Proc& proc) const {
  return proc.batch.size() + proc.ring.size() < setup_.policy.slots;
}

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
    go_on(p, Phase::sees_work, until_it_looks);
  }
}

// ---- publishing

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
  if (waker != kNobody && setup_.policy.order == Order::rings && setup_.topology.group != 0)
    p = sched::idle_near(setup_.topology.home_of(waker, setup_.procs), waker, idle_mask_);
  if (p == sched::kNoP) p = idle_.back();
  take_idle(p);
  ++searching_;
  Proc& proc = procs_[p];
  proc.is_searching = true;
  proc.since = now_ + after;
  go_on(p, Phase::waking, after);
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

void Machine::spill(std::uint32_t p, TaskId task, Ns& cost) {
  Proc& proc = procs_[p];
  const std::uint64_t half = setup_.policy.slots / 2;
  std::uint64_t taken = 0;
  for (; !proc.batch.empty(); ++taken) usual_.push({proc.batch.pop(), now_});
  std::uint64_t count = rules::to_spill(proc.ring.size(), half - std::min(half, taken));
  for (; count != 0; --count, ++taken) usual_.push({proc.ring.pop(), now_});
  usual_.push({task, now_});
  ++result_.spills;
  cost += setup_.costs.global + static_cast<Ns>(taken) * kCopy;
  changed(p);
  make_visible(static_cast<std::int64_t>(taken) + 1);
}

void Machine::put_last(std::uint32_t p, TaskId task, Ns& cost) {
  if (!has_room(procs_[p])) return spill(p, task, cost);
  procs_[p].ring.push(task);
  changed(p);
}

void Machine::put_next(std::uint32_t p, TaskId task, Ns& cost) {
  if (setup_.policy.uses_runnext) {
    const TaskId displaced = std::exchange(procs_[p].runnext, task);
    changed(p);
    if (displaced != kNoTask) put_last(p, displaced, cost);
  } else {
    put_last(p, task, cost);
  }
  wake_searcher(p, cost);
}

void Machine::put_woken(std::uint32_t p, const std::vector<TaskId>& woken, Ns& cost) {
  Proc& proc = procs_[p];
  const bool has_oldest = !proc.batch.empty() || !proc.ring.empty();
  const bool is_behind_fresh =
      has_oldest && !tasks_[proc.batch.empty() ? proc.ring.front() : proc.batch.front()].was_woken;
  const bool fits = woken.size() + proc.inbox.size() <= rules::kInboxPlaces;
  const bool goes_to_inbox =
      is_behind_fresh && fits && !rules::others_could_run(view()) && !is_empty(proc);
  if (goes_to_inbox) {
    for (const TaskId task : woken) proc.inbox.push(task);
    const bool was_last = proc.inbox_tick == proc.ticks;
    proc.ticks_to_look = std::min(proc.ticks_to_look, was_last ? 1 : 0);
    return;
  }
  for (const TaskId task : woken) put_last(p, task, cost);
  wake_searcher(p, cost);
}

void Machine::arrive(TaskId task) {
  tasks_[task].ready_at = now_;
  tasks_[task].was_woken = true;
  urgent_.push(task);
  make_visible(1);
  Ns nobody_pays = 0;
  wake_searcher(kNobody, nobody_pays);
}

void Machine::wake_from_outside(TaskId id) {
  Task& task = tasks_[id];
  if (!task.waits) {
    task.has_token = true;
    return;
  }
  task.waits = false;
  arrive(id);
}

void Machine::arrive_at(std::uint32_t p, TaskId task) {
  tasks_[task].ready_at = now_;
  tasks_[task].last_p = p;
  Proc& proc = procs_[p];
  proc.ring.push(task);
  changed(p);
  if (proc.phase != Phase::idle) return;
  take_idle(p);
  go_on(p, Phase::begins, setup_.costs.wake);
}

void Machine::start_at(std::uint32_t p, TaskId task) { arrive_at(p, task); }

// ---- timers

void Machine::timer_due() {
  if (timers_ == 0 || duty_is_taken_ || idle_.empty() || !some_timer_is_due()) return;
  duty_is_taken_ = true;
  procs_[start_idle(kNobody, setup_.costs.wake)].has_duty = true;
}

bool Machine::some_timer_is_due() const {
  return timers_ != 0 && std::any_of(procs_.begin(), procs_.end(), [this](const Proc& proc) {
           return !proc.timers.empty() && proc.timers.front().time <= now_;
         });
}

TaskId Machine::take_due_timers(std::uint32_t p, std::uint32_t owner, Ns& cost) {
  std::vector<Timer>& timers = procs_[owner].timers;
  if (timers.empty() || timers.front().time > now_) return kNoTask;
  std::vector<TaskId> woken;
  while (!timers.empty() && timers.front().time <= now_ && woken.size() < rules::kTimersAtOnce) {
    std::pop_heap(timers.begin(), timers.end());
    Task& task = tasks_[timers.back().task];
    task.ready_at = timers.back().time;  // late firing is waiting too
    task.was_woken = true;
    woken.push_back(timers.back().task);
    timers.pop_back();
    --timers_;
    cost += setup_.costs.timer;
  }
  TaskId first = kNoTask;
  if (is_empty(procs_[p])) {
    first = woken.front();
    woken.erase(woken.begin());
  }
  if (!woken.empty()) put_woken(p, woken, cost);
  return first;
}

// ---- finding work

TaskId Machine::pop(std::uint32_t p) {
  Proc& proc = procs_[p];
  if (proc.batch.empty()) {
    if (proc.ring.empty()) return kNoTask;
    const std::uint64_t most = setup_.policy.reserves ? rules::kReserve : 1;
    std::uint64_t count = rules::to_reserve(proc.ring.size(), rules::kReserveShare, most);
    for (; count != 0; --count) proc.batch.push(proc.ring.pop());
    changed(p);
  }
  return proc.batch.pop();
}

TaskId Machine::take_inbox(std::uint32_t p) {
  Proc& proc = procs_[p];
  const TaskId task = proc.inbox.pop();
  proc.ticks_to_look = proc.inbox.empty() && urgent_.empty() ? setup_.policy.look_every
                                                             : rules::ticks_after_inbox(false);
  --proc.ticks_to_look;
  proc.turns_to_clock = rules::kTurnsPerClock;
  proc.inbox_tick = ++proc.ticks;
  return task;
}

std::size_t Machine::take_lines(std::vector<TaskId>& out, std::size_t most, bool spared) {
  const std::size_t procs = setup_.procs;
  std::size_t urgent = std::min(rules::share_of_line(urgent_.size(), procs), most / 2);
  if (urgent == 0 && !urgent_.empty()) urgent = 1;
  for (std::size_t i = 0; i < urgent; ++i) out.push_back(urgent_.pop());
  std::size_t usual = std::min(rules::share_of_line(usual_.size(), procs), most - urgent);
  const bool is_young = usual != 0 && now_ - usual_.front().since < rules::kSparedNs;
  if (spared && is_young) usual = 1;
  for (std::size_t i = 0; i < usual; ++i) out.push_back(usual_.pop().task);
  make_visible(-static_cast<std::int64_t>(urgent + usual));
  return urgent + usual;
}

TaskId Machine::look_around(std::uint32_t p, Ns& cost) {
  Proc& proc = procs_[p];
  const bool has_in_ring = !proc.batch.empty() || !proc.ring.empty();
  if (proc.inbox_tick == proc.ticks && proc.ticks != 0 && has_in_ring) {
    proc.ticks_to_look = 1;
    return kNoTask;
  }
  if (!proc.inbox.empty()) return take_inbox(p);
  proc.ticks_to_look = setup_.policy.look_every;
  if (urgent_.empty() && usual_.empty()) return kNoTask;
  cost += setup_.costs.global;
  std::vector<TaskId> few;
  take_lines(few, rules::most_at_look(!idle_.empty()), true);
  for (const TaskId task : few) proc.inbox.push(task);
  return proc.inbox.empty() ? kNoTask : take_inbox(p);
}

TaskId Machine::take_at_hand(std::uint32_t p, Ns& cost) {
  Proc& proc = procs_[p];
  if (proc.turns_to_clock <= 0) {
    proc.turns_to_clock = rules::kTurnsPerClock;
    proc.ticks_to_look -= rules::kTicksPerClock;
    if (std::exchange(proc.chain_tick, proc.ticks) != proc.ticks) proc.chain_since = now_;
    if (now_ - proc.chain_since >= rules::kLongestChainNs) {
      proc.ticks_to_look = 0;
      const TaskId task = std::exchange(proc.runnext, kNoTask);
      if (task != kNoTask) {
        put_last(p, task, cost);
        wake_searcher(p, cost);
      }
      changed(p);
    }
  }
  if (proc.ticks_to_look <= 0)
    if (const TaskId task = look_around(p, cost); task != kNoTask) return task;
  cost += setup_.costs.pop;
  if (proc.runnext != kNoTask) {
    const TaskId task = std::exchange(proc.runnext, kNoTask);
    changed(p);
    --proc.turns_to_clock;
    ++proc.inherited;
    return task;
  }
  if (const TaskId task = pop(p); task != kNoTask) {
    proc.turns_to_clock = rules::kTurnsPerClock;
    --proc.ticks_to_look;
    ++proc.ticks;
    return task;
  }
  return proc.inbox.empty() ? kNoTask : take_inbox(p);
}

TaskId Machine::take_global(std::uint32_t p, Ns& cost) {
  if (urgent_.empty() && usual_.empty()) return kNoTask;
  cost += setup_.costs.global;
  std::vector<TaskId> share;
  take_lines(share, rules::kRingSlots / 2, false);
  for (std::size_t i = 1; i < share.size(); ++i) put_last(p, share[i], cost);
  if (share.size() > 1) wake_searcher(p, cost);
  ++procs_[p].ticks;
  return share.front();
}

void Machine::find(std::uint32_t p) {
  Ns cost = 0;
  TaskId task = take_due_timers(p, p, cost);
  if (task == kNoTask && setup_.policy.first == First::global) task = take_global(p, cost);
  if (task == kNoTask) task = take_at_hand(p, cost);
  if (task == kNoTask) task = take_global(p, cost);
  if (task == kNoTask) return begin_search(p, cost);
  found(p, task, cost);
}

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
    for (std::uint32_t other = 0; other < setup_.procs; ++other) {
      const TaskId task = take_due_timers(p, other, cost);
      if (task != kNoTask) return found(p, task, cost);
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
      return go_on(p, Phase::rounds, cost);
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
      return go_on(p, Phase::steals, cost);
    }
    const bool is_last = rules::looks_at_runnext(proc.round + rules::kStealRounds - policy.rounds);
    const bool looks = policy.runnext == Runnext::at_once || is_last;
    if (policy.runnext != Runnext::never && looks && other.runnext != kNoTask) {
      proc.victim_inherited = other.inherited;
      return go_on(p, Phase::waits, cost + (policy.runnext == Runnext::late ? policy.patience : 0));
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
    return go_on(p, Phase::rounds, cost);
  }
  if (proc.budget == 0) return rest(p, cost);
  if (visible_ > 0) return go_on(p, Phase::sees_work, cost + setup_.costs.spin_round);
  spinners_.push_back(p);
  go_on(p, Phase::spins, cost + static_cast<Ns>(proc.budget) * setup_.costs.spin_round);
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
  const bool gets_up = setup_.policy.wakes && (visible_ > 0 || some_timer_is_due());
  if (gets_up) {  // the second look: it takes the P back, and searches
    ++searching_;
    proc.is_searching = true;
    proc.since = now_ + cost;
    return go_on(p, Phase::begins, cost + setup_.costs.spin_round);
  }
  proc.phase = Phase::idle;
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

void Machine::found(std::uint32_t p, TaskId id, Ns cost) {
  Proc& proc = procs_[p];
  const Ns before = proc.is_searching ? cost : 0;
  end_search(p, cost);
  Task& task = tasks_[id];
  cost += setup_.costs.switching;
  if (task.last_p != p && task.last_p != kNobody)
    cost += is_near(p, task.last_p) ? setup_.costs.miss : setup_.costs.miss_far;
  task.last_p = p;
  if (task.ready_at >= count_from_) {
    const Ns wait = now_ + before + cost - task.ready_at;
    result_.latency.add(wait);
    result_.waits += static_cast<double>(wait);
    result_.squared_waits += static_cast<double>(wait) * static_cast<double>(wait);
  }
  ++result_.turns;
  proc.running = id;
  result_.scheduling -= before;  // counted as searching
  next_step(p, before + cost);
}

// ---- running

void Machine::next_step(std::uint32_t p, Ns cost) {
  Proc& proc = procs_[p];
  proc.step = load_.step(*this, proc.running);
  result_.computing += proc.step.compute;
  go_on(p, Phase::acts, cost + proc.step.compute);
  result_.scheduling -= proc.step.compute;
}

void Machine::act(std::uint32_t p) {
  Proc& proc = procs_[p];
  const Step step = proc.step;
  Task& task = tasks_[proc.running];
  Ns cost = 0;
  switch (step.what) {
    case What::spawn: {
      Task& child = tasks_[step.other];
      child.ready_at = now_;
      child.last_p = p;
      cost = setup_.costs.spawn;
      put_next(p, step.other, cost);
      return next_step(p, cost);
    }
    case What::wake: {
      Task& other = tasks_[step.other];
      if (!other.waits) {
        other.has_token = true;
        return next_step(p, 0);
      }
      other.waits = false;
      other.was_woken = true;
      other.ready_at = now_;
      cost = setup_.costs.ready;
      put_next(p, step.other, cost);
      return next_step(p, cost);
    }
    case What::park:
      if (std::exchange(task.has_token, false)) return next_step(p, 0);
      task.waits = true;
      break;
    case What::yield:
      task.was_woken = true;
      task.ready_at = now_;
      put_last(p, proc.running, cost);
      wake_searcher(p, cost);
      break;
    case What::sleep:
      proc.timers.push_back({now_ + step.sleep_ns, proc.running});
      std::push_heap(proc.timers.begin(), proc.timers.end());
      ++timers_;
      push(now_ + step.sleep_ns, kTimer, 0, 0);
      break;
    case What::end:
      free_.push_back(proc.running);
      --alive_;
      ++result_.ended;
      result_.time = now_;
      break;
  }
  proc.running = kNoTask;
  if (cost != 0) return go_on(p, Phase::begins, cost);
  find(p);
}

}  // namespace magpie::lab
