// analyzer.cc: the time of goroutines. That of Ps: analyzer_procs.cc; wake-ups: analyzer_wakes.cc.
#include "analysis/analyzer.h"

#include <algorithm>
#include <tuple>

namespace magpie::analysis {

namespace {

constexpr std::size_t kTopEntries = 32;
constexpr std::size_t kMostSquare = 1024;  // rows of a table that are filled up

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

// Two goroutines that take turns by runnext: each run is of the goroutine before last.
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
  if (summary_.procs.size() <= kMostSquare)
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
