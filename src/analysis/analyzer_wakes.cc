// analyzer_wakes.cc: which goroutine made which ready, as chains.
#include "analysis/analyzer.h"

namespace magpie::analysis {

namespace {

constexpr std::size_t kHopsShown = 64;

}  // namespace

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

}  // namespace magpie::analysis
