#include "sched/rest/fire.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/probe.h"
#include "sched/core/queues.h"
#include "sched/policy.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"

namespace magpie::sched {
namespace {

using timer::Timer;
using timer::TimerSet;

using policy::kTimersAtOnce;
constexpr std::uint32_t kTurnsPerExactLook = 8;

// Fetches the frames through which a parked goroutine returns first.
void prefetch_stack(const G* g) {
  constexpr std::size_t kLines = 8;
  auto* top = static_cast<const std::byte*>(g->saved_sp);
  for (std::size_t i = 0; i < kLines; ++i) base::prefetch_to_write(top + i * base::kCacheLine);
}

// Woken goroutines overtake goroutines that have not begun, because each of those may run for long.
// Behind other woken goroutines they keep their place, and the order of their times.
void put_woken(M* m, std::span<G* const> woken) {
  P* p = m->p;
  G* oldest = p->queue.oldest();
  bool is_behind_fresh = oldest != nullptr && oldest->state.load(base::relaxed) == GState::fresh;
  if (is_behind_fresh && woken.size() <= p->inbox.room()) return put_in_inbox(m, woken);
  for (G* g : woken) put_last(m, g);
  wake_searcher(m);
}

// More timers are due than fit a batch. The goroutines that were woken run first. Otherwise they
// would pile up, spill to the global queue, and run after their fetched lines have left the caches.
// Searchers fire further timers meanwhile.
bool has_enough_woken(const P* p) {
  return p->counters.ticks.read() < p->fire_again_at_tick && !p->queue.looks_empty();
}

}  // namespace

G* fire_due(M* m, TimerSet& timers, std::int64_t now_ns) {
  Timer* due[kTimersAtOnce];
  std::size_t count = timers.take_due(now_ns, due);
  if (count == 0) return nullptr;
  runtime->chaos.disturb();
  // Each goroutine's record and stack is memory that nobody touched since it fell asleep. Fetch all
  // of it at once.
  G* woken[kTimersAtOnce];
  std::size_t woken_count = 0;
  for (std::size_t i = 0; i < count; ++i) {
    auto* g = static_cast<G*>(due[i]->fire(*due[i]));
    if (g == nullptr) continue;
    base::prefetch_to_write(g);
    woken[woken_count++] = g;
  }
  for (std::size_t i = 0; i < woken_count; ++i) {
    prefetch_stack(woken[i]);
    woken[i]->move(GState::waiting, GState::runnable);
    MAGPIE_PROBE(ready, woken[i]->id);
    if (traced()) trace_ready(m, woken[i], Place::ring, Source::timer);
  }
  m->p->counters.timers_fired.add(count);
  if (traced()) trace_p(m->p, Kind::timers, count);
  if (count == kTimersAtOnce) m->p->fire_again_at_tick = m->p->counters.ticks.read() + woken_count;
  // If the P has nothing else, the caller runs the first one at once: nobody has to be woken for
  // it.
  std::size_t first = woken_count != 0 && m->p->is_empty() ? 1 : 0;
  std::span<G* const> others(woken + first, woken_count - first);
  if (!others.empty()) put_woken(m, others);
  return first != 0 ? woken[0] : nullptr;
}

G* fire_own(M* m) {
  if (!has_timers(m->p) || has_enough_woken(m->p)) return nullptr;
  std::int64_t now = base::now_ns();
  if (m->p->timers.earliest_ns() > now) return nullptr;
  return fire_due(m, m->p->timers, now);
}

bool sees_due_timer(M* m) {
  std::int64_t now = base::now_ns();
  for (P* p : runtime->ps.in_use()) {
    if (p->timers.earliest_ns() > now) continue;
    m->timer_tip = p;
    return true;
  }
  return false;
}

G* fire_others(M* m) {
  std::span<P* const> ps = runtime->ps.in_use();
  auto count = static_cast<std::uint32_t>(ps.size());
  std::int64_t now = base::now_ns();
  if (P* tip = std::exchange(m->timer_tip, nullptr)) {
    if (tip->timers.earliest_ns() <= now)
      if (G* g = fire_due(m, tip->timers, now)) return g;
  }
  for (std::uint32_t looks = std::min(count, policy::kTimerLooks); looks != 0; --looks) {
    P* p = ps[m->next_timer_look++ % count];
    if (p->timers.earliest_ns() > now) continue;
    if (G* g = fire_due(m, p->timers, now)) return g;
  }
  return nullptr;
}

bool own_timers_are_due(P* p) {
  if (has_enough_woken(p)) return false;
  bool exact = p->turns_to_exact_look-- == 0;
  if (exact) p->turns_to_exact_look = kTurnsPerExactLook;
  bool due = p->timers.earliest_ns() <= (exact ? base::now_ns() : base::coarse_now_ns());
  if (due) p->turns_to_exact_look = 0;  // so that the next look says so too
  return due;
}

std::int64_t earliest_timer_ns() {
  std::int64_t earliest = kNever;
  for (P* p : runtime->ps.in_use()) earliest = std::min(earliest, p->timers.earliest_ns());
  return earliest;
}

void see_to_timer(M* m, std::int64_t when_ns) {
  if (m != nullptr) m->timer_owed_ns = kNever;
  if (!runtime->timer_duty.covers(when_ns)) wake_searcher(m);
}

}  // namespace magpie::sched
