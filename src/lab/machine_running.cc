// machine_running.cc: goroutines run, step by step.
#include "lab/machine.h"

#include <algorithm>
#include <utility>

namespace magpie::lab {

namespace rules = sched::policy;

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

void Machine::next_step(std::uint32_t p, Ns cost) {
  Proc& proc = procs_[p];
  proc.step = load_.step(*this, proc.running);
  result_.computing += proc.step.compute;
  go_on(p, Activity::acts, cost + proc.step.compute);
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
  if (cost != 0) return go_on(p, Activity::begins, cost);
  find(p);
}

}  // namespace magpie::lab
