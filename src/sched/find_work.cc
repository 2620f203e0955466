#include "sched/find_work.h"

#include <algorithm>
#include <mutex>

#include "base/clock.h"
#include "base/cpu.h"
#include "sched/deadlock.h"
#include "sched/procs.h"
#include "sched/queues.h"
#include "sched/runtime.h"
#include "sched/steal.h"
#include "sched/wake.h"

namespace magpie::sched {
namespace {

constexpr std::uint32_t kGlobalEvery = 61;  // prime, so that it does not fall in step with the program
// A pair that wakes each other through runnext gives way to the ring after so many turns.
constexpr std::uint32_t kLongestStreak = 64;

constexpr std::uint32_t kSpinLeast = 8;  // rounds; one is about half a microsecond
constexpr std::uint32_t kSpinMost = 64;
constexpr int kPausesPerRound = 16;

inline G* own_turn(P* p, G* g) {
  p->runnext_streak = 0;
  --p->ticks_to_global;
  p->counters.ticks.increment();
  return g;
}

[[gnu::noinline]] G* take_from_global_at_last(Runtime& rt, P* p) {
  p->ticks_to_global = kGlobalEvery;
  G* g = rt.global.pop();
  return g == nullptr ? nullptr : own_turn(p, g);
}

[[gnu::noinline]] void end_streak(Runtime& rt, M* m) {
  if (G* g = m->p->queue.next.take()) {
    put_last(rt, m, g);  // the ring is not empty now
    wake_searcher(rt, m);
  }
  m->p->runnext_streak = 0;
}

[[gnu::always_inline]] inline G* take_at_hand(Runtime& rt, M* m) {
  P* p = m->p;
  if (p->ticks_to_global == 0) [[unlikely]] {
    if (G* g = take_from_global_at_last(rt, p)) return g;
  }
  if (p->runnext_streak == kLongestStreak) [[unlikely]] end_streak(rt, m);
  if (G* g = p->queue.next.take()) {
    ++p->runnext_streak;
    p->counters.inherited.increment();
    return g;
  }
  if (G* g = p->queue.pop()) return own_turn(p, g);
  return nullptr;
}

G* take_global_share(Runtime& rt, M* m) {
  P* p = m->p;
  G* share[RunQueue::kHalf];
  std::size_t count = rt.global.pop_share(rt.ps.count(), share);
  if (count == 0) return nullptr;
  p->counters.global_batches.increment();
  for (std::size_t i = 1; i < count; ++i) put_last(rt, m, share[i]);
  if (count > 1) wake_searcher(rt, m);  // they were out of sight for a moment
  return own_turn(p, share[0]);
}

bool work_is_visible(Runtime& rt) {
  if (!rt.global.empty()) return true;
  for (P* p : rt.ps.in_use()) {
    if (!p->queue.looks_empty()) return true;
  }
  return false;
}

// A sleeping CPU takes tens of microseconds to wake, a searching one a tenth. So search on for about as long as it
// has paid before; a thread that found nothing the last times sleeps at once.
bool search_on(Runtime& rt, M* m) {
  for (std::uint32_t round = 0; round < m->spin_budget; ++round) {
    for (int i = 0; i < kPausesPerRound; ++i) base::cpu_relax();
    if (rt.world.stopping() || work_is_visible(rt)) {
      m->spin_budget = std::min(m->spin_budget * 2, kSpinMost);
      return true;
    }
  }
  m->spin_budget = std::max(m->spin_budget / 2, kSpinLeast);
  return false;
}

// A searcher has found something: it is none any more, and starts the next.
void stop_searching(Runtime& rt, M* m) {
  m->searching = false;
  rt.search.stop();
  wake_searcher(rt, m);
}

// Gives the P up and sleeps. True: the M has a P again; false: the runtime ends.
bool rest(Runtime& rt, M* m) {
  P* p = m->p;
  std::int64_t now = base::now_ns();
  std::unique_lock hold(rt.idle.lock());
  if (rt.world.stopping() || !rt.global.empty()) return true;
  p->counters.parks.increment();
  p->end_hold(now);
  rt.idle.push_locked(p);
  m->p = nullptr;
  auto was = m->searching ? Search::Was::searching : Search::Was::not_searching;
  m->searching = false;
  rt.search.rest(was);  // [search-or-sleep]
  hold.unlock();

  bool again = work_is_visible(rt);
  hold.lock();
  if (again && !rt.world.stopping()) {
    if (P* other = rt.idle.pop_p_locked()) {
      rt.search.wake_searching();
      m->p = other;
      m->searching = true;
      other->begin_hold(now);
      rt.pins.bind(m);
      return true;
    }
  }
  if (rt.world.ending()) return false;
  if (may_be_deadlock(rt)) [[unlikely]] {
    hold.unlock();
    handle_deadlock(rt);
    hold.lock();
    if (rt.world.ending()) return false;
  }
  hold.release();
  return sleep_and_unlock(rt, m);
}

G* search(Runtime& rt, M* m) {
  if (!m->searching) {
    if (!rt.search.try_start(rt.ps.count())) return nullptr;
    m->searching = true;
  }
  m->p->counters.spins.increment();
  do {
    if (G* g = steal(rt, m)) return own_turn(m->p, g);
  } while (search_on(rt, m) && !rt.world.stopping() && rt.global.empty());
  return nullptr;
}

}  // namespace

bool loop_is_wanted(M* m) {
  Runtime& rt = *runtime;
  return rt.world.stopping() || (m->p->ticks_to_global == 0 && procs_refresh_is_due(rt));
}

G* next_at_hand(M* m) {
  Runtime& rt = *runtime;
  if (loop_is_wanted(m)) return nullptr;
  for (;;) {
    G* g = take_at_hand(rt, m);
    if (g == nullptr || admit(m, g)) return g;
  }
}

G* find_work(M* m) {
  Runtime& rt = *runtime;
  for (;;) {
    if (rt.world.stopping() && !rt.world.leave(rt, m)) return nullptr;
    if (m->p->ticks_to_global == 0 && procs_refresh_is_due(rt)) [[unlikely]] refresh_procs(rt, m);
    G* g = take_at_hand(rt, m);
    if (g == nullptr) g = take_global_share(rt, m);
    if (g == nullptr) {
      std::int64_t since = base::now_ns();
      P* searched_with = m->p;
      g = search(rt, m);
      searched_with->counters.searching_ns.add(static_cast<std::uint64_t>(base::now_ns() - since));
    }
    if (g == nullptr) {
      if (!rest(rt, m)) return nullptr;
      continue;
    }
    if (m->searching) stop_searching(rt, m);
    if (admit(m, g)) return g;
  }
}

}  // namespace magpie::sched
