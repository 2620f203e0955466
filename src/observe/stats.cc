#include <magpie/stats.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "sched/entry.h"
#include "sched/run/runtime.h"

namespace magpie {

using namespace sched;

namespace {

// A search counts as busy until it ends: only then is its time known. What was shown stays.
std::int64_t never_less(base::Atomic<std::int64_t>& shown, std::int64_t now) {
  std::int64_t before = shown.load(base::relaxed);
  while (before < now && !shown.compare_exchange_weak(before, now, base::relaxed, base::relaxed)) {
  }
  return std::max(before, now);
}

ProcStats read(const P& p, std::int64_t now_ns) {
  const PCounters& counters = p.counters;
  PState state = p.state.load(base::relaxed);
  ProcStats stats;
  stats.id = p.index;
  stats.idle = state == PState::idle;
  stats.queue_length = p.queue.size() + p.inbox.size();
  stats.has_runnext = p.queue.next.peek() != nullptr;
  stats.ticks = counters.ticks.read();
  stats.switches = stats.ticks + counters.inherited.read();
  stats.goroutines_started = counters.goroutines_started.read();
  stats.goroutines_ended = counters.goroutines_ended.read();
  stats.steals_tried = counters.steals_tried.read();
  stats.steals_succeeded = counters.steals_succeeded.read();
  stats.steals_near = counters.steals_near.read();
  stats.steals_far = counters.steals_far.read();
  stats.goroutines_stolen = counters.goroutines_stolen.read();
  stats.runnext_stolen = counters.runnext_stolen.read();
  stats.overflows = counters.overflows.read();
  stats.goroutines_spilled = counters.goroutines_spilled.read();
  stats.global_batches = counters.global_batches.read();
  stats.looks = counters.looks.read();
  stats.parks = counters.parks.read();
  stats.wakes = counters.wakes.read();
  stats.searches = counters.searches.read();
  stats.joined_in_place = counters.joined_in_place.read();
  stats.timers_fired = counters.timers_fired.read();
  stats.polls = counters.polls.read();
  stats.polled = counters.polled.read();
  stats.handoffs = counters.handoffs.read();
  stats.preemptions = counters.preemptions.read();
  auto held = static_cast<std::int64_t>(counters.held_ns.read());
  std::int64_t since = p.held_since_ns.load(base::relaxed);  // 0: on its way to a thread, or idle
  if (since != 0 && now_ns > since) held += now_ns - since;
  stats.busy_ns =
      never_less(p.busy_shown_ns, held - static_cast<std::int64_t>(counters.searching_ns.read()));
  return stats;
}

void add(ProcStats& sum, const ProcStats& one) {
  sum.queue_length += one.queue_length;
  sum.ticks += one.ticks;
  sum.switches += one.switches;
  sum.goroutines_started += one.goroutines_started;
  sum.goroutines_ended += one.goroutines_ended;
  sum.steals_tried += one.steals_tried;
  sum.steals_succeeded += one.steals_succeeded;
  sum.steals_near += one.steals_near;
  sum.steals_far += one.steals_far;
  sum.goroutines_stolen += one.goroutines_stolen;
  sum.runnext_stolen += one.runnext_stolen;
  sum.overflows += one.overflows;
  sum.goroutines_spilled += one.goroutines_spilled;
  sum.global_batches += one.global_batches;
  sum.looks += one.looks;
  sum.parks += one.parks;
  sum.wakes += one.wakes;
  sum.searches += one.searches;
  sum.joined_in_place += one.joined_in_place;
  sum.timers_fired += one.timers_fired;
  sum.polls += one.polls;
  sum.polled += one.polled;
  sum.handoffs += one.handoffs;
  sum.preemptions += one.preemptions;
  sum.busy_ns += one.busy_ns;
}

void count_state(Stats& stats, GState state) {
  switch (state) {
    case GState::free:
    case GState::ended:
      return;
    case GState::fresh:
      ++stats.fresh;
      return;
    case GState::runnable:
      ++stats.runnable;
      return;
    case GState::running:
      ++stats.running;
      return;
    case GState::waiting:
      ++stats.waiting;
      return;
  }
}

void count_states(Stats& stats, std::span<const G> records) {
  for (const G& g : records) count_state(stats, g.state.load(base::relaxed));
}

// A look at a million goroutines takes milliseconds. So a goroutine is inside only to find the next
// slab: while it looks, sysmon may take its P, and it may be stopped. The records stay while it
// runs.
void count_states_as_goroutine(Stats& stats) {
  for (GPools::Walk walk;; ++walk.slab) {
    std::span<const G> records;
    {
      Entry entry;
      records = runtime->records.carved_in(walk);
    }
    if (records.empty()) return;
    count_states(stats, records);
  }
}

// A plain thread visits for a part of a slab at a time, as run() waits for visits before it ends.
void count_states_as_thread(Stats& stats, std::uint64_t generation) {
  constexpr std::size_t kAtOnce = 16'384;
  std::size_t first = 0;
  for (GPools::Walk walk;;) {
    Visit visit;
    if (!visit || runtime->generation != generation) return;
    std::span<const G> records = runtime->records.carved_in(walk);
    if (records.empty()) return;
    std::span<const G> rest = records.subspan(first);
    count_states(stats, rest.first(std::min(kAtOnce, rest.size())));
    first = rest.size() > kAtOnce ? first + kAtOnce : 0;
    if (first == 0) ++walk.slab;
  }
}

// All but what takes a look at every goroutine.
Stats read() {
  Stats stats;
  std::int64_t now_ns = base::now_ns();
  std::size_t in_use = runtime->ps.count();
  for (P* p : runtime->ps.all()) {
    ProcStats one = read(*p, now_ns);
    add(stats.total, one);
    stats.timers += p->timers.size();
    if (stats.procs.size() < in_use) stats.procs.push_back(one);
  }
  stats.global_queue_length = runtime->global.size();
  Search::View view = runtime->search.view();
  stats.idle_procs = static_cast<int>(view.idle);
  stats.searching_threads = static_cast<int>(view.searching);
  stats.threads = runtime->threads.count();
  stats.idle_threads = runtime->idle.idle_threads();
  stats.goroutines_without_p = runtime->without_p.count();
  stats.preempted_threads = runtime->preempted.load(base::relaxed);
  stats.valve_openings = runtime->sysmon.valve().openings();
  const ProcsSource& limits = runtime->procs_source;
  stats.cpus = limits.cpus();
  stats.cpu_quota = limits.quota();
  const cpus::Throttling throttling = limits.throttling();
  stats.quota_periods = throttling.periods;
  stats.throttled_periods = throttling.throttled_periods;
  stats.throttled_ns = static_cast<std::int64_t>(throttling.throttled_ns);
  stats.goroutines = num_goroutines();
  return stats;
}

}  // namespace

Stats stats() {
  if (current_m() != nullptr) {
    Stats stats = read();
    count_states_as_goroutine(stats);
    return stats;
  }
  Stats stats;
  std::uint64_t generation;
  {
    Visit visit;
    if (!visit) return stats;
    stats = read();
    generation = runtime->generation;
  }
  count_states_as_thread(stats, generation);
  return stats;
}

}  // namespace magpie
