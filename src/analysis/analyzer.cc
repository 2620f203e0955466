#include "analysis/analyzer.h"

#include <algorithm>
#include <tuple>

namespace magpie::analysis {

namespace {

constexpr std::size_t kWakeRecords = 1 << 16;
constexpr std::size_t kTopEntries = 32;
constexpr std::size_t kHopsShown = 64;

Part part_of(Place place) {
  switch (place) {
    case Place::runnext:
      return Part::next_slot;
    case Place::ring:
    case Place::stolen:
      return Part::own_queue;
    case Place::global:
      return Part::global_queue;
    case Place::inbox:
      return Part::inbox;
    case Place::urgent:
      return Part::urgent_line;
    case Place::stopped:
      return Part::stopped;
    case Place::fresh:
      return Part::fresh;
  }
  return Part::unknown;
}

Part part_of(const Goroutine& g) {
  switch (g.state) {
    case State::runnable:
      return part_of(g.place);
    case State::running:
      return Part::running;
    case State::waiting:
      return Part::blocked;
    case State::blocking:
      return Part::blocking_call;
    case State::without_p:
      return Part::without_p;
    case State::stopped:
      return Part::stopped;
    case State::unknown:
    case State::ended:
      break;
  }
  return Part::unknown;
}

// Keeps the largest by `size`, up to kTopEntries.
template <class T, class Size>
void keep_largest(std::vector<T>& list, const T& item, Size size) {
  if (list.size() == kTopEntries && size(item) <= size(list.back())) return;
  auto larger = [&](const T& a, const T& b) { return size(a) > size(b); };
  list.insert(std::upper_bound(list.begin(), list.end(), item, larger), item);
  if (list.size() > kTopEntries) list.pop_back();
}

bool is_without_p(const Goroutine& g) {
  return g.proc < 0 && (g.state == State::blocking || g.state == State::without_p);
}

}  // namespace

Analyzer::Analyzer(AnalyzerOptions options)
    : options_(std::move(options)), work_(options_.wake_limit_ns), wakes_(kWakeRecords) {
  states_.set_procs(options_.procs);
}

Analyzer::Life& Analyzer::life(const Goroutine& g) {
  if (g.slot >= lives_.size()) lives_.resize(states_.slots() + 64);
  return lives_[g.slot];
}

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

SiteSummary& Analyzer::site(std::uint64_t pc) {
  SiteSummary& found = sites_[pc];
  found.site = pc;
  return found;
}

void Analyzer::add(const Event& event) {
  if (!begun_) {
    begun_ = true;
    summary_.begin_ns = summary_.end_ns = event.time_ns;
    work_.advance(states_, event.time_ns);
    if (options_.procs != 0) lane(static_cast<std::int32_t>(options_.procs) - 1);
  }
  work_.advance(states_, event.time_ns);
  note_silence(event);
  ++summary_.events;
  ++summary_.kinds[static_cast<std::size_t>(event.kind) % summary_.kinds.size()];
  summary_.end_ns = std::max(summary_.end_ns, event.time_ns);

  const States::Steps& steps = states_.apply(event);
  if (!states_.procs().empty()) lane(static_cast<std::int32_t>(states_.procs().size()) - 1);
  for (const Step& step : steps) account(step, event);
  work_.note(states_, steps, event);
  switch (event.kind) {
    case Kind::create:
    case Kind::ready:
      note_wake(event);
      break;
    case Kind::region_begin:
    case Kind::region_end:
      note_region(event);
      break;
    default:
      note_of_proc(event);
      break;
  }
  for (const Step& step : steps)
    if (step.now->state == State::ended) end_life(*step.now);
  if (event.proc >= 0) update_lane(event.proc);
  if (event.kind == Kind::taken && event.args[0] < lanes_.size())
    update_lane(static_cast<std::int32_t>(event.args[0]));
}

// The time since the last event of any stream, with work at hand.
void Analyzer::note_silence(const Event& event) {
  const std::int64_t silent = event.time_ns - summary_.end_ns;
  if (silent < options_.silence_limit_ns || work_.runnable() == 0) return;
  bool any_runs = false;
  for (const Proc& p : states_.procs()) any_runs |= p.goroutine != 0;
  if (!any_runs) return;
  ++summary_.silences;
  summary_.silent_ns += silent;
  summary_.longest_silence_ns = std::max(summary_.longest_silence_ns, silent);
}

void Analyzer::account(const Step& step, const Event& event) {
  const Goroutine& before = step.before;
  const Goroutine& now = *step.now;
  Life& l = life(now);
  const std::int64_t spent = now.since_ns - before.since_ns;
  if (event.kind == Kind::create && now.born_ns == now.since_ns && before.state == State::unknown) {
    l = {};
    ++site(now.site).started;
    ++summary_.goroutines_started;
  } else if (before.state == State::runnable && now.state == State::running) {
    split_line_time(step, event, l.parts);
  } else {
    l.parts[part_of(before)] += spent;
  }
  without_p_ += is_without_p(now) - is_without_p(before);
  summary_.most_without_p = std::max(summary_.most_without_p, without_p_);

  if (before.state == State::waiting && now.state != State::waiting) end_wait(step, event);
  if (now.state == State::running && before.state != State::blocking) {
    ++l.runs;
    begin_run(now, event);
  }
  if (before.state == State::running && now.state != State::running) {
    keep_largest(summary_.longest_runs,
                 LongRun{now.number, now.site, before.proc, before.since_ns, spent},
                 [](const LongRun& run) { return run.duration_ns; });
    if (event.kind == Kind::taken) {
      l.preempted += event.args[2] == static_cast<std::uint64_t>(trace::Why::used_its_slice);
      l.blocked_undeclared += now.undeclared;
    }
  }
}

void Analyzer::split_line_time(const Step& step, const Event& event, Parts& parts) {
  const std::int64_t ready = step.before.since_ns, run = step.now->since_ns;
  std::int64_t in_line = run - ready;
  Place place = step.now->place;
  if (event.proc >= 0) {
    const Lane& l = lane(event.proc);
    std::int64_t thief_begins = run;
    if (place == Place::stolen && l.stolen_ns >= 0) {
      thief_begins = std::max(ready, l.stolen_ns);
      parts[Part::thief] += run - thief_begins;
      in_line -= run - thief_begins;
    }
    const std::int64_t held = std::min(states_.procs()[event.proc].held_since_ns, thief_begins);
    const std::int64_t woken = std::max(ready, l.wake_sent_ns);
    if (l.wake_sent_ns >= 0 && held > woken) {
      parts[Part::off_cpu] += held - woken;
      in_line -= held - woken;
    }
  }
  if (place == Place::stolen) place = step.before.place;
  parts[part_of(place)] += in_line;

  const std::int64_t waited = run - ready;
  last_queued_ns_ = waited;
  const auto line = static_cast<std::size_t>(place);
  summary_.ready_to_running.add(waited);
  summary_.ready_to_running_by_place[line].add(waited);
  Oldest& oldest = summary_.oldest[line];
  if (waited > oldest.age_ns) oldest = {step.now->number, step.now->site, run, waited};
}

void Analyzer::begin_run(const Goroutine& g, const Event& event) {
  if (event.proc < 0) return;
  Lane& l = lane(event.proc);
  ++summary_.procs[event.proc].runs;
  if (event.kind != Kind::run) return;
  if (g.place == Place::stolen && l.stolen_ns >= 0 && l.victim >= 0) {
    StealCell& cell = steals(event.proc, l.victim);
    const std::int64_t carried = event.time_ns - l.stolen_ns;
    ++cell.ran;
    cell.until_ran_ns += carried;
    cell.longest_ns = std::max(cell.longest_ns, carried);
    l.victim = -1;
  }
  note_turn(g, event);
}

// Two goroutines that take turns by the next slot: each run is of the goroutine before last.
void Analyzer::note_turn(const Goroutine& g, const Event& event) {
  Lane& l = lane(event.proc);
  const bool returns = g.place == Place::runnext && g.number == l.before_last && g.number != l.last;
  if (returns) {
    ++summary_.procs[event.proc].next_slot_returns;
    if (l.turns.turns++ == 0) {
      l.turns.first = l.last;
      l.turns.second = g.number;
      l.turns.proc = event.proc;
      l.turns.begin_ns = event.time_ns;
    }
    l.turns.end_ns = event.time_ns;
  } else {
    flush_turns(l);
  }
  l.before_last = l.last;
  l.last = g.number;
}

void Analyzer::flush_turns(Lane& l) {
  if (l.turns.turns >= 100)
    keep_largest(summary_.ping_pong, l.turns,
                 [](const PingPong& turns) { return static_cast<std::int64_t>(turns.turns); });
  l.turns = {};
}

void Analyzer::end_wait(const Step& step, const Event& event) {
  const Goroutine& before = step.before;
  const std::int64_t waited = step.now->since_ns - before.since_ns;
  WaitClass& waits = waits_[{before.reason, before.site, 0}];
  waits.reason = before.reason;
  waits.site = before.site;
  ++waits.count;
  waits.sum_ns += waited;
  waits.longest_ns = std::max(waits.longest_ns, waited);
  if (event.kind != Kind::ready) return;

  const auto source = event.args[2] < 4 ? static_cast<Source>(event.args[2]) : Source::goroutine;
  const std::uint64_t waker = source == Source::goroutine ? states_.actor(event) : 0;
  const Goroutine* by = waker != 0 ? states_.find(waker) : nullptr;
  const std::uint64_t waker_site = by != nullptr ? by->site : 0;
  keep_largest(summary_.longest_waits,
               Wait{before.number, before.site, before.object, before.reason, before.since_ns,
                    waited, waker, true},
               [](const Wait& wait) { return wait.duration_ns; });
  BlockEdge& edge =
      blockers_[{before.site, waker_site, static_cast<std::uint64_t>(source) << 8 | before.reason}];
  edge.waiter_site = before.site;
  edge.waker_site = waker_site;
  edge.source = source;
  edge.reason = before.reason;
  ++edge.count;
  edge.sum_ns += waited;
  edge.longest_ns = std::max(edge.longest_ns, waited);
}

Analyzer::Spent Analyzer::spent(const Goroutine& g) const {
  Spent result;
  const Parts none;
  const Parts& parts = g.slot < lives_.size() ? lives_[g.slot].parts : none;
  const std::int64_t in_state = states_.now_ns() - g.since_ns;
  result.running_ns = parts[Part::running] + parts[Part::without_p];
  for (Part part : {Part::own_queue, Part::global_queue, Part::next_slot, Part::thief,
                    Part::off_cpu, Part::stopped, Part::inbox, Part::urgent_line, Part::fresh})
    result.queued_ns += parts[part];
  if (g.state == State::running || g.state == State::without_p) result.running_ns += in_state;
  if (g.state == State::runnable || g.state == State::stopped) result.queued_ns += in_state;
  return result;
}

const Analyzer::WakeRecord* Analyzer::record(std::uint64_t number) const {
  if (number == 0 || number > wake_count_ || wake_count_ - number >= kWakeRecords) return nullptr;
  return &wakes_[number % kWakeRecords];
}

void Analyzer::note_wake(const Event& event) {
  const Goroutine* woken = states_.find(event.args[0]);
  if (woken == nullptr) return;
  Life& l = life(*woken);
  WakeRecord record;
  record.goroutine = woken->number;
  record.site = woken->site;
  record.ready_ns = event.time_ns;
  record.of_goroutine = spent(*woken);
  if (event.kind == Kind::ready && event.args[2] < 4)
    record.source = static_cast<Source>(event.args[2]);
  const std::uint64_t waker = states_.actor(event);
  const Goroutine* by = record.source == Source::goroutine ? states_.find(waker) : nullptr;
  if (by != nullptr && by != woken) {
    const Life& of_waker = life(*by);
    record.waker = waker;
    record.waker_site = by->site;
    record.by = of_waker.wake;
    record.of_waker = spent(*by);
    l.depth = of_waker.depth + 1;
    l.chain_begin_ns = of_waker.chain_begin_ns;
  } else {
    l.depth = 1;
    l.chain_begin_ns = event.time_ns;
  }
  l.wake = ++wake_count_;
  wakes_[l.wake % kWakeRecords] = record;
  if (l.depth > deepest_.hops)
    deepest_ = {l.wake, l.depth, l.chain_begin_ns, event.time_ns, record.of_goroutine};
}

Chain Analyzer::follow(std::uint64_t wake, std::int64_t end_ns, const Spent& at_end) const {
  Chain chain;
  chain.end_ns = end_ns;
  std::int64_t until_ns = end_ns;
  Spent until = at_end;
  for (const WakeRecord* r = record(wake); r != nullptr; r = record(r->by)) {
    if (chain.last.size() < kHopsShown) {
      Hop hop;
      hop.goroutine = r->goroutine;
      hop.site = r->site;
      hop.ready_ns = r->ready_ns;
      hop.running_ns = until.running_ns - r->of_goroutine.running_ns;
      hop.queued_ns = until.queued_ns - r->of_goroutine.queued_ns;
      hop.other_ns = until_ns - r->ready_ns - hop.running_ns - hop.queued_ns;
      hop.source = r->source;
      chain.last.push_back(hop);
    }
    ++chain.hops;
    chain.begin_ns = r->ready_ns;
    until_ns = r->ready_ns;
    until = r->of_waker;
  }
  return chain;
}

void Analyzer::note_region(const Event& event) {
  const std::uint64_t who = states_.actor(event);
  const Goroutine* g = states_.find(who);
  if (g == nullptr) return;
  Life& l = life(*g);
  Parts now = l.parts;
  now[part_of(*g)] += states_.now_ns() - g->since_ns;
  if (event.kind == Kind::region_begin) {
    l.regions.push_back({event.args[0], event.time_ns, now});
    return;
  }
  if (l.regions.empty()) return;
  const OpenRegion open = l.regions.back();
  l.regions.pop_back();
  std::string name = options_.string ? std::string(options_.string(open.name)) : std::string();
  if (name.empty()) name = "#" + std::to_string(open.name);
  regions_[name].add(event.time_ns - open.begin_ns, now - open.before);
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

void Analyzer::end_life(const Goroutine& g) {
  Life& l = life(g);
  SiteSummary& s = site(g.site);
  ++s.ended;
  ++summary_.goroutines_ended;
  s.runs += l.runs;
  s.preempted += l.preempted;
  s.blocked_undeclared += l.blocked_undeclared;
  s.total += l.parts;
  if (g.born_in_trace) s.lives.add(g.since_ns - g.born_ns, l.parts);
  if (options_.on_life) options_.on_life(g, l.parts, l.runs);
  last_ = {l.wake, l.depth, l.chain_begin_ns, g.since_ns, spent(g)};
  l = {};
}

Summary Analyzer::finish(std::int64_t end_ns) {
  summary_.end_ns = std::max(summary_.end_ns, end_ns);
  end_ns = summary_.end_ns;
  summary_.work = work_.finish(states_, end_ns);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    charge_lane(static_cast<std::int32_t>(i), end_ns);
    flush_turns(lanes_[i]);
  }
  summary_.threads = threads_.size();
  summary_.longest_chain = follow(deepest_.wake, deepest_.end_ns, deepest_.spent);
  summary_.longest_chain.hops = deepest_.hops;
  summary_.longest_chain.begin_ns = deepest_.begin_ns;
  summary_.critical_path = follow(last_.wake, last_.end_ns, last_.spent);

  for (const auto& [number, g] : states_.goroutines()) {
    if (g.state == State::ended) continue;  // by the last event
    Life& l = life(g);
    const std::int64_t in_state = end_ns - g.since_ns;
    l.parts[part_of(g)] += in_state;
    SiteSummary& s = site(g.site);
    ++s.alive;
    ++summary_.goroutines_alive;
    s.runs += l.runs;
    s.preempted += l.preempted;
    s.blocked_undeclared += l.blocked_undeclared;
    s.total += l.parts;
    if (options_.on_life) options_.on_life(g, l.parts, l.runs);
    if (g.state == State::waiting)
      summary_.still_waiting.push_back({g.number, g.site, g.object, g.reason, in_state});
    if (g.state == State::waiting)
      keep_largest(summary_.longest_waits,
                   Wait{g.number, g.site, g.object, g.reason, g.since_ns, in_state, 0, false},
                   [](const Wait& wait) { return wait.duration_ns; });
    if (g.state == State::running)
      keep_largest(summary_.longest_runs, LongRun{g.number, g.site, g.proc, g.since_ns, in_state},
                   [](const LongRun& run) { return run.duration_ns; });
    if (g.state == State::runnable) {
      Oldest& oldest = summary_.oldest[static_cast<std::size_t>(g.place)];
      if (in_state > oldest.age_ns) oldest = {g.number, g.site, end_ns, in_state};
    }
  }
  finish_tables();
  return std::move(summary_);
}

void Analyzer::finish_tables() {
  for (auto& row : summary_.steals) row.resize(summary_.procs.size());
  // What is equal is ordered by its numbers, so that a trace has one summary.
  auto rank = [](const auto& one) {
    if constexpr (requires { one.waker_site; })
      return std::tuple(-one.sum_ns, one.reason, one.waiter_site, one.waker_site, one.source);
    else
      return std::tuple(-one.sum_ns, one.reason, one.site);
  };
  auto by_sum = [&](const auto& a, const auto& b) { return rank(a) < rank(b); };
  for (auto& [pc, s] : sites_) summary_.sites.push_back(std::move(s));
  auto active = [](const SiteSummary& s) { return s.total.sum() - s.total[Part::blocked]; };
  std::ranges::sort(summary_.sites, [&](const SiteSummary& a, const SiteSummary& b) {
    return active(a) != active(b) ? active(a) > active(b) : a.site < b.site;
  });
  for (auto& [name, times] : regions_) summary_.regions.push_back({name, std::move(times)});
  for (const auto& [key, waits] : waits_) summary_.waits.push_back(waits);
  std::ranges::sort(summary_.waits, by_sum);
  for (const auto& [key, edge] : blockers_) summary_.blockers.push_back(edge);
  std::ranges::sort(summary_.blockers, by_sum);
  std::ranges::sort(summary_.still_waiting, [](const StillWaits& a, const StillWaits& b) {
    return a.for_ns != b.for_ns ? a.for_ns > b.for_ns : a.goroutine < b.goroutine;
  });
}

}  // namespace magpie::analysis
