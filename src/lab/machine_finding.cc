// machine_finding.cc: what a P has at hand, and its share of the global queue.
#include "lab/machine.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace magpie::lab {

namespace rules = sched::policy;

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
  proc.ticks_to_look = proc.inbox.empty() && urgent_is_empty() ? setup_.policy.look_every
                                                               : rules::ticks_after_inbox(false);
  --proc.ticks_to_look;
  proc.turns_to_clock = rules::kTurnsPerClock;
  proc.inbox_tick = ++proc.ticks;
  return task;
}

bool Machine::urgent_is_empty() const {
  return std::all_of(shards_.begin(), shards_.end(),
                     [](const Shard& shard) { return shard.urgent.empty(); });
}
bool Machine::lines_are_empty() const {
  return std::all_of(shards_.begin(), shards_.end(), [](const Shard& shard) {
    return shard.urgent.empty() && shard.usual.empty();
  });
}

// From the shard of P p's node, or from another one whose oldest goes first.
std::size_t Machine::take_line(std::uint32_t p, Ring<Queued> Shard::*line, std::vector<TaskId>& out,
                               std::size_t most, Usual how) {
  const auto oldest = [&](std::size_t node) {
    const Ring<Queued>& queued = shards_[node].*line;
    return queued.empty() ? std::numeric_limits<Ns>::max() : queued.front().since;
  };
  const std::uint32_t home = setup_.topology.node_of(p);
  std::size_t from = home;
  Ns least = rules::rank_of_own_shard(oldest(home));
  for (std::size_t node = 0; node < shards_.size(); ++node) {
    if (node == home || oldest(node) >= least) continue;
    from = node;
    least = oldest(node);
  }
  Ring<Queued>& queued = shards_[from].*line;
  const std::size_t procs =
      from == home ? setup_.topology.home_of(p, setup_.procs).node.size() : setup_.procs;
  std::size_t count = std::min(rules::share_of_line(queued.size(), procs), most);
  if (how == Usual::spared && count != 0 && now_ - queued.front().since < rules::kSparedNs)
    count = 1;
  for (std::size_t i = 0; i < count; ++i) out.push_back(queued.pop().task);
  result_.shared += count;
  if (from != home) result_.far_shared += count;
  return count;
}

std::size_t Machine::take_lines(std::uint32_t p, std::vector<TaskId>& out, std::size_t most,
                                Usual how) {
  const std::size_t half = std::max<std::size_t>(most / 2, 1);
  const std::size_t urgent = take_line(p, &Shard::urgent, out, half, Usual::share);
  const std::size_t usual = take_line(p, &Shard::usual, out, most - urgent, how);
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
  if (lines_are_empty()) return kNoTask;
  cost += setup_.costs.global;
  std::vector<TaskId> few;
  take_lines(p, few, rules::most_at_look(!idle_.empty()), Usual::spared);
  for (const TaskId task : few) proc.inbox.push(task);
  return proc.inbox.empty() ? kNoTask : take_inbox(p);
}

TaskId Machine::take_at_hand(std::uint32_t p, Ns& cost) {
  Proc& proc = procs_[p];
  if (proc.turns_to_clock <= 0) {
    proc.turns_to_clock = rules::kTurnsPerClock;
    proc.ticks_to_look -= rules::kTicksPerClock;
    using rules::ChainClock;
    const auto verdict = proc.chain_clock.look(proc.ticks, now_, ChainClock::Because::turns_passed);
    if (verdict == ChainClock::Verdict::gives_way) {
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
  if (lines_are_empty()) return kNoTask;
  cost += setup_.costs.global;
  std::vector<TaskId> share;
  take_lines(p, share, rules::kRingSlots / 2, Usual::share);
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

}  // namespace magpie::lab
