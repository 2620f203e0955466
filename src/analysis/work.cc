#include "analysis/work.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace magpie::analysis {

namespace {

constexpr std::size_t kWorst = 64;
// No kernel keeps a waker off its CPU for longer.
constexpr std::int64_t kLatestWakeNs = 1'000'000'000;

bool is_for_all(Place place) {
  return place == Place::ring || place == Place::global || place == Place::urgent;
}

}  // namespace

std::uint64_t WorkMeter::runnable() const {
  return std::accumulate(runnable_.begin(), runnable_.end(), std::uint64_t{0});
}

std::uint64_t WorkMeter::runnable_for_all() const {
  std::uint64_t sum = 0;
  for (std::size_t place = 0; place < runnable_.size(); ++place)
    if (is_for_all(static_cast<Place>(place))) sum += runnable_[place];
  return sum;
}

void WorkMeter::advance(const States& states, std::int64_t now_ns) {
  const std::int64_t elapsed = now_ns - last_ns_;
  if (elapsed <= 0) return;
  last_ns_ = now_ns;

  std::uint64_t left = std::min(idle_ + handed_over_, runnable());
  std::uint64_t lost = 0;
  auto blame = [&](Cause cause, std::uint64_t procs) {
    procs = std::min(procs, left);
    result_.wasted_ns[static_cast<std::size_t>(cause)] +=
        static_cast<std::int64_t>(procs) * elapsed;
    left -= procs;
    return procs;
  };
  wasted_ns_ += static_cast<std::int64_t>(left) * elapsed;
  if (left != 0) {
    if (states.is_world_stopped()) blame(Cause::world_stopped, left);
    blame(Cause::handing_over, handed_over_);
    // What is set aside for its P explains only idle Ps for which there was nothing else.
    const std::uint64_t for_all = runnable_for_all();
    auto blame_beyond = [&](Cause cause, std::uint64_t procs) {
      blame(cause, std::min(procs, left - std::min(left, for_all)));
    };
    blame_beyond(Cause::next_slot, runnable_[static_cast<std::size_t>(Place::runnext)]);
    blame_beyond(Cause::not_for_all, runnable_[static_cast<std::size_t>(Place::inbox)] +
                                         runnable_[static_cast<std::size_t>(Place::stopped)] +
                                         runnable_[static_cast<std::size_t>(Place::fresh)] +
                                         runnable_[static_cast<std::size_t>(Place::stolen)]);
    // The thread that comes for a P may be the searcher on which all others rely.
    const bool someone_comes = waking_ + searching_ + between_ + handed_over_ != 0;
    blame(Cause::waking, waking_);
    blame(Cause::searching, searching_);
    blame(Cause::between, between_);
    if (someone_comes) blame(Cause::one_at_a_time, left);
    blame(Cause::not_for_all, left - std::min(left, newcomer_count_));
    lost = blame(Cause::no_wake, left);
  }
  if (lost == 0) {
    close_violation(now_ns - elapsed);
  } else {
    if (lost_since_ns_ < 0) {
      lost_since_ns_ = now_ns - elapsed;
      open_ = {};
    }
    open_.lost_ns += static_cast<std::int64_t>(lost) * elapsed;
    if (!named_ && now_ns - lost_since_ns_ >= limit_ns_) open_violation(states);
  }
}

void WorkMeter::open_violation(const States& states) {
  named_ = true;
  Waste& waste = open_.waste;
  waste.begin_ns = lost_since_ns_;
  for (std::size_t i = 0; i < states.procs().size(); ++i)
    if (states.procs()[i].state == ProcState::idle) waste.proc = static_cast<std::int32_t>(i);
  if (result_.violations + unsettled_.size() > 1000) return;  // looks at every goroutine
  const Goroutine* oldest = nullptr;
  for (const auto& [number, g] : states.goroutines())
    if (g.state == State::runnable && is_for_all(g.place) && g.placed_ns > looked_until_ns_ &&
        (oldest == nullptr || g.since_ns < oldest->since_ns))
      oldest = &g;
  if (oldest == nullptr) return;
  waste.goroutine = oldest->number;
  waste.site = oldest->site;
  waste.place = oldest->place;
}

void WorkMeter::close_violation(std::int64_t now_ns) {
  if (named_) {
    open_.waste.end_ns = now_ns;
    unsettled_.push_back(open_);
    settle_before(now_ns - kLatestWakeNs);
  }
  lost_since_ns_ = -1;
  named_ = false;
}

void WorkMeter::settle_before(std::int64_t time_ns) {
  for (; !unsettled_.empty() && unsettled_.front().waste.end_ns < time_ns; unsettled_.pop_front()) {
    ++result_.violations;
    result_.worst.push_back(unsettled_.front().waste);
    std::ranges::sort(result_.worst, [](const Waste& a, const Waste& b) {
      return a.end_ns - a.begin_ns > b.end_ns - b.begin_ns;
    });
    if (result_.worst.size() > kWorst) result_.worst.pop_back();
  }
}

// A wake-up was on its way since then.
void WorkMeter::explain_since(std::int64_t time_ns) {
  auto explain = [this](const Violation& violation) {
    result_.wasted_ns[static_cast<std::size_t>(Cause::no_wake)] -= violation.lost_ns;
    result_.wasted_ns[static_cast<std::size_t>(Cause::waking)] += violation.lost_ns;
  };
  if (named_ && lost_since_ns_ >= time_ns - limit_ns_) {
    explain(open_);
    lost_since_ns_ = -1;
    named_ = false;
  }
  while (!unsettled_.empty() && unsettled_.back().waste.begin_ns >= time_ns - limit_ns_) {
    explain(unsettled_.back());
    unsettled_.pop_back();
  }
}

void WorkMeter::count(const Goroutine& g, int by) {
  // A stopped goroutine needs a P as well.
  if (g.state == State::runnable || g.state == State::stopped) {
    const Place place = g.state == State::stopped ? Place::stopped : g.place;
    runnable_[static_cast<std::size_t>(place)] += by;
    if (!is_for_all(place) || g.placed_ns <= looked_until_ns_) return;
    const auto its = newcomers_.try_emplace(g.placed_ns).first;
    newcomer_count_ += by;
    its->second += by;
    if (its->second == 0) newcomers_.erase(its);  // else millions stay, of goroutines long gone
  }
}

void WorkMeter::note_search(const Event& event) {
  Seen& seen = seen_[event.proc];
  if (event.kind == Kind::search_begin) seen.search_begin_ns = event.time_ns;
  if (event.kind != Kind::search_end || event.args[0] != 0) return;
  looked_until_ns_ = std::max(looked_until_ns_, seen.search_begin_ns);
  while (!newcomers_.empty() && newcomers_.begin()->first <= looked_until_ns_) {
    newcomer_count_ -= newcomers_.begin()->second;
    newcomers_.erase(newcomers_.begin());
  }
}

void WorkMeter::recount(const States& states, std::size_t proc) {
  if (proc >= states.procs().size()) return;
  const Proc& p = states.procs()[proc];
  Seen& seen = seen_[proc];
  const bool in_use = proc < states.procs_in_use();
  const Seen now{.idle = in_use && p.state == ProcState::idle,
                 .handed_over = in_use && p.state == ProcState::handed_over,
                 .searching = p.searching,
                 .between = p.state == ProcState::held && !p.searching && p.goroutine == 0,
                 .waking = seen.waking && p.state != ProcState::held,
                 .told_ns = seen.told_ns,
                 .search_begin_ns = seen.search_begin_ns};
  idle_ += now.idle - seen.idle;
  handed_over_ += now.handed_over - seen.handed_over;
  searching_ += now.searching - seen.searching;
  between_ += now.between - seen.between;
  waking_ += now.waking - seen.waking;
  seen = now;
}

void WorkMeter::note(const States& states, const States::Steps& steps, const Event& event) {
  for (const Step& step : steps) {
    count(step.before, -1);
    count(*step.now, +1);
  }
  if (seen_.size() < states.procs().size() || event.kind == Kind::procs) {
    seen_.resize(states.procs().size());
    for (std::size_t i = 0; i < seen_.size(); ++i) recount(states, i);
  }
  if (event.proc >= 0 && static_cast<std::size_t>(event.proc) < seen_.size()) {
    recount(states, event.proc);
    Seen& seen = seen_[event.proc];
    note_search(event);
    if (event.kind == Kind::thread_wake) explain_since(seen.told_ns);
    seen.told_ns = event.time_ns;
  }
  if (event.kind == Kind::taken) recount(states, event.args[0]);
  if (event.kind == Kind::thread_wake && event.args[0] < seen_.size()) {
    Seen& seen = seen_[event.args[0]];
    if (!seen.waking && states.procs()[event.args[0]].state == ProcState::idle) {
      seen.waking = true;
      ++waking_;
    }
  }
}

WorkConservation WorkMeter::finish(const States& states, std::int64_t end_ns) {
  advance(states, end_ns);
  close_violation(end_ns);
  settle_before(std::numeric_limits<std::int64_t>::max());
  return result_;
}

}  // namespace magpie::analysis
