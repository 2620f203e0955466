// analyzer_procs.cc: what Ps did, whom they stole from, and the quota of the process.
#include <algorithm>

#include "analysis/analyzer.h"

namespace magpie::analysis {

Analyzer::Lane& Analyzer::lane(std::int32_t index) {
  if (static_cast<std::size_t>(index) >= lanes_.size()) {
    const std::size_t count = std::max<std::size_t>(states_.procs().size(), index + 1);
    Lane fresh;
    fresh.since_ns = summary_.begin_ns;
    lanes_.resize(count, fresh);
    summary_.procs.resize(count);
    summary_.steals.resize(count);
  }
  return lanes_[index];
}

StealCell& Analyzer::steals(std::int32_t thief, std::int32_t victim) {
  auto& row = summary_.steals[thief];
  if (static_cast<std::size_t>(victim) >= row.size()) row.resize(victim + 1);
  return row[victim];
}

void Analyzer::note_quota(const Event& event) {
  summary_.quota_periods += event.args[0];
  summary_.throttled_periods += event.args[1];
  // The file may say anything: added as unsigned numbers, which may overflow.
  summary_.throttled_ns =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(summary_.throttled_ns) + event.args[2]);
  summary_.quota = static_cast<double>(event.args[3]) / 1000;
}

void Analyzer::note_of_proc(const Event& event) {
  if (event.kind == Kind::lost) summary_.lost += event.args[0];
  if (event.kind == Kind::quota) note_quota(event);
  if (event.kind == Kind::thread_wake && event.args[0] < lanes_.size()) {
    Lane& woken = lanes_[event.args[0]];
    woken.wake_sent_ns = event.time_ns;
    woken.woken = true;
  }
  if (event.proc < 0) return;
  Lane& l = lane(event.proc);
  ProcSummary& p = summary_.procs[event.proc];
  switch (event.kind) {
    case Kind::proc_begin:
      threads_.insert(event.args[0]);
      break;
    case Kind::steal: {
      const auto victim = event.args[0];
      l.stolen_ns = event.time_ns;
      l.victim = victim < lanes_.size() ? static_cast<std::int32_t>(victim) : -1;
      if (l.victim < 0) break;
      StealCell& cell = steals(event.proc, l.victim);
      ++cell.hits;
      cell.moved += event.args[1];
      cell.from_next_slot += event.args[2];
      break;
    }
    case Kind::steal_miss:
      if (event.args[0] < lanes_.size())
        steals(event.proc, static_cast<std::int32_t>(event.args[0])).misses += event.args[1];
      break;
    case Kind::spill:
      ++p.spills;
      p.spilled += event.args[0];
      break;
    case Kind::global_take:
      ++p.global_takes;
      break;
    case Kind::thread_park:
      ++p.parks;
      break;
    case Kind::thread_wake:
      p.wakes += event.args[0] != static_cast<std::uint64_t>(event.proc);
      break;
    case Kind::search_begin:
      ++p.searches;
      break;
    case Kind::search_end:
      p.found += event.args[0] != 0;
      summary_.wakes_for_nothing += l.woken && event.args[0] == 0;
      l.woken = false;
      break;
    case Kind::poll:
      ++p.polls;
      p.empty_polls += event.args[0] == 0;
      break;
    case Kind::timers:
      p.timers += event.args[0];
      break;
    default:
      break;
  }
}

void Analyzer::charge_lane(std::int32_t index, std::int64_t until_ns) {
  Lane& l = lane(index);
  ProcSummary& p = summary_.procs[index];
  const std::int64_t spent = until_ns - l.since_ns;
  l.since_ns = until_ns;
  switch (l.activity) {
    case Activity::idle:
      p.idle_ns += spent;
      break;
    case Activity::handed_over:
      p.handed_over_ns += spent;
      break;
    case Activity::scheduler:
      p.scheduler_ns += spent;
      break;
    case Activity::searching:
      p.searching_ns += spent;
      break;
    case Activity::running:
      p.running_ns += spent;
      break;
  }
}

void Analyzer::update_lane(std::int32_t index) {
  if (static_cast<std::size_t>(index) >= states_.procs().size()) return;
  const Proc& p = states_.procs()[index];
  Activity now = Activity::scheduler;
  if (p.goroutine != 0)
    now = Activity::running;
  else if (p.state == ProcState::idle)
    now = Activity::idle;
  else if (p.state == ProcState::handed_over)
    now = Activity::handed_over;
  else if (p.searching)
    now = Activity::searching;
  Lane& l = lane(index);
  if (now == l.activity) return;
  charge_lane(index, states_.now_ns());
  l.activity = now;
  if (now == Activity::running) l.woken = false;
}

}  // namespace magpie::analysis
