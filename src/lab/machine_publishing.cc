// machine_publishing.cc: into which queue a goroutine goes that becomes ready: started or woken by
// another one, by the outside, or by a timer.
#include "lab/machine.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace magpie::lab {

namespace rules = sched::policy;

bool Machine::is_empty(const Proc& proc) const {
  return proc.batch.empty() && proc.ring.empty() && proc.inbox.empty() && proc.runnext == kNoTask;
}

bool Machine::has_room(const Proc& proc) const {
  return proc.batch.size() + proc.ring.size() < setup_.policy.slots;
}

void Machine::spill(std::uint32_t p, TaskId task, Ns& cost) {
  Proc& proc = procs_[p];
  const std::uint64_t half = setup_.policy.slots / 2;
  Ring<Queued>& usual = shards_[setup_.topology.node_of(p)].usual;
  std::uint64_t taken = 0;
  for (; !proc.batch.empty(); ++taken) usual.push({proc.batch.pop(), now_});
  std::uint64_t count = rules::to_spill(proc.ring.size(), half - std::min(half, taken));
  for (; count != 0; --count, ++taken) usual.push({proc.ring.pop(), now_});
  usual.push({task, now_});
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
  shards_[task % shards_.size()].urgent.push({task, now_});  // the memory of records is anywhere
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
  if (proc.activity != Activity::idle) return;
  take_idle(p);
  go_on(p, Activity::begins, setup_.costs.wake);
}

void Machine::start_at(std::uint32_t p, TaskId task) { arrive_at(p, task); }

void Machine::timer_due() {
  if (timers_ == 0 || duty_is_taken_ || idle_.empty() || !some_timer_is_due()) return;
  duty_is_taken_ = true;
  Proc& keeper = procs_[start_idle(kNobody, setup_.costs.wake)];
  keeper.has_duty = true;
  keeper.timer_tip = due_timer();
}

std::uint32_t Machine::due_timer() const {
  if (timers_ == 0) return kNoVictim;
  for (std::uint32_t p = 0; p < setup_.procs; ++p)
    if (!procs_[p].timers.empty() && procs_[p].timers.front().time <= now_) return p;
  return kNoVictim;
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

}  // namespace magpie::lab
