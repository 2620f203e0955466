#include "sched/timers.h"

#include <sched.h>

#include <algorithm>
#include <span>

#include "base/clock.h"
#include "base/cpu.h"
#include "sched/entry.h"
#include "sched/queues.h"
#include "sched/runtime.h"

namespace magpie::sched {
namespace {

using timer::TimerSet;

constexpr std::size_t kTimersAtOnce = 64;
constexpr std::uint32_t kTurnsPerExactLook = 8;

// The frames that a parked goroutine returns through first.
void prefetch_stack(const G* g) {
  constexpr std::size_t kLines = 8;
  auto* top = static_cast<const std::byte*>(g->saved_sp);
  for (std::size_t i = 0; i < kLines; ++i) base::prefetch_to_write(top + i * base::kCacheLine);
}

// They overtake goroutines that have not begun, each of which may run for long. Behind others that were woken they keep their
// place, and the order of their times.
void put_woken(Runtime& rt, M* m, std::span<G* const> woken) {
  P* p = m->p;
  G* oldest = p->queue.oldest();
  bool is_behind_fresh = oldest != nullptr && oldest->state.load(base::relaxed) == GState::fresh;
  if (is_behind_fresh && woken.size() <= p->inbox.room()) return put_in_inbox(rt, m, woken);
  for (G* g : woken) put_last(rt, m, g);
  wake_searcher(rt, m);
}

}  // namespace

namespace {

[[gnu::noinline]] bool arm_from_outside(Timer& timer, std::int64_t when_ns) {
  Outsider leave;
  if (!leave) return false;
  Runtime& rt = *runtime;
  if (rt.ps.in_use()[0]->timers.insert(timer, when_ns)) watch_over(rt, nullptr, when_ns);
  return true;
}

bool has_forgotten_sets = false;  // written in the child of a fork(), by its only thread

[[gnu::noinline]] TimerSet::Removal disarm_from_outside(Timer& timer) {
  Outsider leave;
  if (leave) return TimerSet::remove(timer);
  // The runtime is at its end, or was when the timer was last heard of, and forgets its timers soon.
  // But not if it was the runtime of the parent of a fork(): its sets stay, in the child.
  while (TimerSet* set = timer.word.view().set) {
    if (has_forgotten_sets && set->is_forgotten()) return TimerSet::remove(timer);
    sched_yield();
  }
  return timer.word.view().firing ? TimerSet::Removal::firing : TimerSet::Removal::idle;
}

}  // namespace

void forget_timers(Runtime& rt) {
  has_forgotten_sets = true;
  for (P* p : rt.ps.all()) p->timers.forget();
}

bool arm(Timer& timer, std::int64_t when_ns) {
  Entry entry;
  M* m = entry.m();
  if (m == nullptr) [[unlikely]]
    return arm_from_outside(timer, when_ns);
  if (m->p->timers.insert(timer, when_ns)) watch_over(*runtime, m, when_ns);
  return true;
}

TimerSet::Removal disarm(Timer& timer) {
  Entry entry;
  if (entry.m() == nullptr) [[unlikely]]
    return disarm_from_outside(timer);
  return TimerSet::remove(timer);
}

void disarm_and_settle(Timer& timer) {
  // Again after a fire that ended: it may have put the timer into a set again.
  for (int spin = 1; disarm(timer) == TimerSet::Removal::firing; ++spin) {
    base::cpu_relax();
    if (spin % 100 == 0) sched_yield();  // whoever fires it may have lost its CPU
  }
}

void abandon(Timer& timer) { runtime->abandoned_timers.put(timer); }

// One at a time: run() may end while this goroutine waits for the allocator.
void drop_abandoned() {
  for (;;) {
    Timer* timer = [] {
      Entry entry;
      return runtime->abandoned_timers.take();
    }();
    if (timer == nullptr) return;
    timer->free(*timer);
  }
}

void arm_and_hold(M* m, Timer& timer, std::int64_t when_ns) {
  TimerSet& timers = m->p->timers;
  timers.lock().lock();
  if (timers.insert_locked(timer, when_ns)) m->watch_owed_ns = when_ns;
}

void release_held_timers(M* m) { m->p->timers.lock().unlock(); }

G* fire_due(Runtime& rt, M* m, TimerSet& timers, std::int64_t now_ns) {
  Timer* due[kTimersAtOnce];
  std::size_t count = timers.take_due(now_ns, due);
  if (count == 0) return nullptr;
  rt.chaos.disturb();
  // Each goroutine's record and stack is memory that nobody touched since it fell asleep: fetch all of it at once.
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
  }
  m->p->counters.timers_fired.add(count);
  if (count == kTimersAtOnce) m->p->fire_again_at_tick = m->p->counters.ticks.read() + woken_count;
  // If there is nothing else the first is run at once by the caller; nobody has to be woken for it.
  std::size_t first = woken_count != 0 && m->p->is_empty() ? 1 : 0;
  std::span<G* const> others(woken + first, woken_count - first);
  if (!others.empty()) put_woken(rt, m, others);
  return first != 0 ? woken[0] : nullptr;
}

// More are due than fit a batch. Those that were woken run first: else they would pile up, spill over to the global queue, and
// run when what was fetched for them has gone from the caches again. Searchers fire what is due meanwhile.
static bool has_enough_woken(const P* p) {
  return p->counters.ticks.read() < p->fire_again_at_tick && !p->queue.looks_empty();
}

G* fire_own(Runtime& rt, M* m) {
  if (!has_timers(m->p) || has_enough_woken(m->p)) return nullptr;
  std::int64_t now = base::now_ns();
  if (m->p->timers.earliest_ns() > now) return nullptr;
  return fire_due(rt, m, m->p->timers, now);
}

G* fire_others(Runtime& rt, M* m) {
  std::span<P* const> ps = rt.ps.in_use();
  std::int64_t now = base::now_ns();
  for (P* p : ps) {
    if (p->timers.earliest_ns() > now) continue;
    if (G* g = fire_due(rt, m, p->timers, now)) return g;
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

std::int64_t earliest_timer_ns(const Runtime& rt) {
  std::int64_t earliest = kNever;
  for (P* p : rt.ps.in_use()) earliest = std::min(earliest, p->timers.earliest_ns());
  return earliest;
}

void watch_over(Runtime& rt, M* m, std::int64_t when_ns) {
  if (m != nullptr) m->watch_owed_ns = kNever;
  if (!rt.watch.covers(when_ns)) wake_searcher(rt, m);
}

// All leave their sets before the first is freed. That runs code of users, which may stop other timers, or wait for a thread
// that does: and whoever stops one at the end of the runtime waits until it is in no set.
void drop_timers(Runtime& rt) {
  for (P* p : rt.ps.all()) {
    while (Timer* timer = p->timers.take_any()) {
      if (timer->drop != nullptr) {
        timer->drop(*timer);
      } else {
        timer->finished();
      }
    }
  }
  while (Timer* timer = rt.abandoned_timers.take()) timer->free(*timer);
}

}  // namespace magpie::sched
