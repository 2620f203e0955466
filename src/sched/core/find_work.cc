#include "sched/core/find_work.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "base/cpu.h"
#include "sched/core/queues.h"
#include "sched/core/steal.h"
#include "sched/rest/deadlock.h"
#include "sched/rest/fire.h"
#include "sched/rest/wake.h"
#include "sched/run/runtime.h"
#include "sched/taking/bound.h"

namespace magpie::sched {
namespace {

constexpr std::int32_t kLookEvery = 61;  // ticks; prime: does not fall in step with the program
// A chain of goroutines that are taken from runnext looks at the clock after so many; that counts for so many ticks.
constexpr std::int32_t kTurnsPerClock = 64;
constexpr std::int32_t kTicksPerClock = 16;

constexpr std::uint64_t kPrefetchAhead = 6;

constexpr std::uint32_t kSpinLeast = 8;  // rounds; one is about half a microsecond
constexpr std::uint32_t kSpinMost = 64;
constexpr int kPausesPerRound = 32;

inline G* own_turn(P* p, G* g) {
  p->turns_to_clock = kTurnsPerClock;
  p->ticks_to_look = p->ticks_to_look - 1;
  p->counters.ticks.increment();
  return g;
}

// While the inbox holds some, or could be filled with urgent ones, every second turn is its.
G* own_turn_of_inbox(Runtime& rt, P* p, G* g) {
  p->ticks_to_look = p->inbox.is_empty() && rt.global.urgent() == 0 ? kLookEvery : 2;
  own_turn(p, g);
  p->inbox_tick = p->counters.ticks.read();
  return g;
}

// Goroutines that were stopped get a turn at once if there is nothing else, and else a part of the P's time: see sysmon_taking.cc.
G* take_stopped_if_due(Runtime& rt, P* p) {
  if (rt.global.held() == 0 || base::now_ns() < p->stopped_again_ns) return nullptr;
  return rt.global.pop_held();
}

// The P has work of its own and looks at everything else, of which it takes a little: from each line of the global queue and
// from the network.
[[gnu::noinline]] G* look_around(Runtime& rt, M* m) {
  P* p = m->p;
  // However often it is asked for: the ring has a turn in between.
  bool is_turn_of_ring = p->inbox_tick == p->counters.ticks.read() && p->queue.has_in_ring();
  if (is_turn_of_ring) {
    p->ticks_to_look = 1;
    return nullptr;
  }
  if (G* g = p->inbox.take()) return own_turn_of_inbox(rt, p, g);
  p->ticks_to_look = kLookEvery;
  rt.chaos.muddle(p);
  rt.chaos.scatter(rt, m);
  p->counters.looks.increment();
  if (G* g = take_stopped_if_due(rt, p)) return own_turn(p, g);
  G* few[Inbox::kPlaces];
  // A P that is idle takes what there is itself.
  bool a_p_is_idle = rt.search.view().idle != 0;
  // Else it leaves room for the network.
  std::size_t most = a_p_is_idle ? 2 : Inbox::kPlaces * 3 / 4;
  std::size_t count = rt.global.pop_few(rt.ps.count(), {few, most});
  if (count != 0) p->counters.global_batches.increment();
  for (std::size_t i = 0; i < count; ++i) p->inbox.put(few[i]);
  rt.network.poll_if_overdue(rt, m);
  G* g = p->inbox.take();
  return g == nullptr ? nullptr : own_turn_of_inbox(rt, p, g);
}

// The chain in runnext has run for some turns, or sysmon finds it long enough.
[[gnu::noinline]] void end_chain_if_long(Runtime& rt, M* m) {
  P* p = m->p;
  p->turns_to_clock = kTurnsPerClock;
  p->ticks_to_look = p->ticks_to_look - kTicksPerClock;
  std::int64_t now = base::now_ns();
  std::uint64_t tick = p->counters.ticks.read();
  if (std::exchange(p->chain_tick, tick) != tick) p->chain_since_ns = now;
  bool is_over = p->chain_is_over.load(base::relaxed);
  if (is_over) p->chain_is_over.store(false, base::relaxed);
  if (!is_over && now - p->chain_since_ns < P::kLongestChainNs) return;
  p->ticks_to_look = 0;
  if (G* g = p->queue.next.take()) {
    put_last(rt, m, g);  // the ring is not empty now
    wake_searcher(rt, m);
  }
}

[[gnu::always_inline]] inline G* take_at_hand(Runtime& rt, M* m) {
  P* p = m->p;
  if (p->turns_to_clock <= 0) [[unlikely]]
    end_chain_if_long(rt, m);
  if (p->ticks_to_look <= 0) [[unlikely]] {
    if (G* g = look_around(rt, m)) return g;
  }
  if (G* g = p->queue.next.take()) {
    p->turns_to_clock = p->turns_to_clock - 1;
    p->counters.inherited.increment();
    return g;
  }
  if (G* g = p->queue.pop()) {
    // Its record was most likely written by another core, or long ago: fetch one of the next meanwhile.
    if (G* soon = p->queue.ahead(kPrefetchAhead)) prefetch(soon);
    return own_turn(p, g);
  }
  if (!p->inbox.is_empty()) return own_turn_of_inbox(rt, p, p->inbox.take());
  return nullptr;
}

// The P has nothing of its own.
G* take_global_share(Runtime& rt, M* m) {
  P* p = m->p;
  G* share[RunQueue::kHalf];
  p->counters.looks.increment();
  if (G* g = take_stopped_if_due(rt, p)) return own_turn(p, g);
  std::size_t count = rt.global.pop_share(rt.ps.count(), share);
  if (count == 0) {
    G* stopped = rt.global.pop_held();
    return stopped == nullptr ? nullptr : own_turn(p, stopped);
  }
  p->counters.global_batches.increment();
  for (std::size_t i = 1; i < count; ++i) put_last(rt, m, share[i]);
  p->queue.note_all_from_global();
  if (count > 1) wake_searcher(rt, m);  // they were out of sight for a moment
  return own_turn(p, share[0]);
}

G* take_from_network(Runtime& rt, M* m) {
  G* g = rt.network.poll(rt, m);
  return g == nullptr ? nullptr : own_turn(m->p, g);
}

bool timer_is_due(Runtime& rt) {
  std::int64_t earliest = earliest_timer_ns(rt);
  return earliest != kNever && earliest <= base::now_ns();
}

// A sleeping CPU takes tens of microseconds to wake, a searching one a tenth. So search on for about as long as it
// has paid before; a thread that found nothing the last times sleeps after a few rounds. Not for timers: whoever
// sleeps until the next one fires all that came due while it woke up.
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
  rt.chaos.disturb();
  m->searching = false;
  rt.search.stop();
  wake_searcher(rt, m);
}

// Gives the P up and goes on the list of sleeping threads. False: there is something to do after all.
bool lie_down(Runtime& rt, M* m) {
  std::lock_guard hold(rt.idle.lock());
  if (rt.world.stopping() || !rt.global.empty()) return false;
  P* p = std::exchange(m->p, nullptr);
  p->counters.parks.increment();
  p->end_hold(base::now_ns());
  rt.idle.push_locked(p);
  rt.idle.push_locked(m);
  rt.search.rest(m->searching ? Search::Was::searching : Search::Was::not_searching);
  m->searching = false;
  return true;
}

// After the second look found work: takes a P back to search, unless the M was handed one meanwhile, or none is idle.
bool get_up(Runtime& rt, M* m) {
  std::lock_guard hold(rt.idle.lock());
  if (!m->listed || rt.world.stopping()) return false;
  P* p = rt.idle.pop_p_locked();
  if (p == nullptr) return false;
  rt.idle.remove_locked(m);
  rt.search.wake_searching();
  m->searching = true;
  begin_with(rt, m, p);
  return true;
}

bool nobody_can_run(Runtime& rt) {
  std::lock_guard hold(rt.idle.lock());
  return may_be_deadlock(rt);
}

// If nothing ran between the two looks, all that is seen between them holds at one instant. Otherwise a goroutine that was
// running when the network was asked may wait for it since. Who runs counts a turn first, and is seen under Idle's lock.
bool is_deadlock(Runtime& rt) {
  std::uint64_t turns = all_turns(rt);
  if (!nobody_can_run(rt)) return false;
  return !rt.network.is_waited_for() && !has_other_threads(rt) && nobody_can_run(rt) &&
         all_turns(rt) == turns;
}

// A keeper of the watch goes to work. If the timer is far away sysmon finds somebody else in time, see watch.h.
void hand_on_watch(Runtime& rt, M* m, std::int64_t next) {
  constexpr std::int64_t kSoonNs = 20'000'000;
  if (next - base::now_ns() <= kSoonNs || rt.sysmon.helpers() == 0) wake_searcher(rt, m);
}

// Gives the P up and sleeps. True: the M has a P again, not necessarily after sleeping; false: the runtime ends.
bool rest(Runtime& rt, M* m) {
  rt.chaos.disturb();
  if (!lie_down(rt, m)) return true;
  rt.chaos.disturb();
  m->watch_owed_ns = kNever;  // [watch] it looks at all timers now
  while (true) {
    rt.search.before_second_look();
    if (work_is_visible(rt) || timer_is_due(rt)) {
      rt.chaos.disturb();
      if (get_up(rt, m)) return true;
      rt.sysmon.look_soon();  // it was handed a P, or all Ps are held, maybe by loops
      break;
    }
    std::int64_t next = earliest_timer_ns(rt);
    if (next == kNever && !rt.network.is_waited_for() && is_deadlock(rt)) [[unlikely]]
      report_deadlock(rt);
    next = std::min(next, rt.stacks.next_trim_ns());
    bool keeps = next != kNever && rt.watch.take(next);
    if (keeps) be_punctual(m);
    bool polled = rt.network.sleep_in_poller(rt, m, keeps ? next : kNever);
    if (!polled && !keeps) break;
    bool handed = !polled && m->wake_up.wait_until(next);
    if (keeps) rt.watch.leave(next);
    if (handed) return go_on_as_handed(rt, m);
    if (m->p != nullptr) {
      if (keeps) hand_on_watch(rt, m, next);
      return true;
    }
    rt.stacks.trim(base::now_ns());
  }
  return sleep_until_handed_a_p(rt, m);
}

G* search(Runtime& rt, M* m) {
  if (!m->searching) {
    if (!rt.search.try_start(rt.ps.count())) return nullptr;
    m->searching = true;
  }
  m->p->counters.spins.increment();
  do {
    if (G* g = fire_others(rt, m)) return own_turn(m->p, g);
    if (G* g = take_at_hand(rt, m)) return g;  // readied by a timer that fired
    if (G* g = steal(rt, m)) return own_turn(m->p, g);
  } while (search_on(rt, m) && !rt.world.stopping() && rt.global.empty());
  return nullptr;
}

}  // namespace

std::uint64_t all_turns(Runtime& rt) {
  std::uint64_t turns = 0;
  for (P* p : rt.ps.all()) turns += p->turns();
  return turns;
}

bool work_is_visible(Runtime& rt) {
  if (!rt.global.empty()) return true;
  for (P* p : rt.ps.in_use()) {
    if (!p->queue.looks_empty()) return true;
  }
  return false;
}

void look_again_for_others(Runtime& rt) {
  rt.search.before_second_look();
  if (work_is_visible(rt)) return wake_searcher(rt, nullptr);
  std::int64_t earliest = earliest_timer_ns(rt);
  if (earliest != kNever) watch_over(rt, nullptr, earliest);
  if (rt.network.in_use()) rt.network.is_awaited(rt);
}

bool loop_is_wanted(M* m) {
  Runtime& rt = *runtime;
  return rt.world.stopping() || (has_timers(m->p) && own_timers_are_due(m->p));
}

[[gnu::noinline]] static G* next_at_hand_after_all(M* m) {
  Runtime& rt = *runtime;
  if (loop_is_wanted(m) || rt.chaos.one_in(8)) return nullptr;
  for (;;) {
    G* g = take_at_hand(rt, m);
    if (g == nullptr || admit(m, g)) return g;
  }
}

// One that came from the next slot, and can be joined: maybe it was run in place.
[[gnu::noinline]] static G* admitted_or_another(M* m, G* g) {
  return admit(m, g) ? g : next_at_hand_after_all(m);
}

// Most often nothing is in the way, and it is the one in the next slot, or the next of a claimed batch. These paths
// call nothing, so they save no registers.
G* next_at_hand(M* m) {
  P* p = m->p;
  bool plain = !runtime->world.stopping() && p->ticks_to_look > 0 && !has_timers(p);
  if (!plain) [[unlikely]]
    return next_at_hand_after_all(m);
  if (p->queue.next.peek() != nullptr) {
    if (p->turns_to_clock <= 0) [[unlikely]]
      return next_at_hand_after_all(m);
    G* g = p->queue.next.take_at_once();
    if (g == nullptr) [[unlikely]]  // a thief is at it, or was
      return next_at_hand_after_all(m);
    p->turns_to_clock = p->turns_to_clock - 1;
    p->counters.inherited.increment();
    return g->joinable ? admitted_or_another(m, g) : g;
  }
  G* g = p->queue.upcoming();
  if (g != nullptr && !g->joinable) {
    p->queue.take_upcoming();
    return own_turn(p, g);
  }
  return next_at_hand_after_all(m);
}

G* find_work(M* m) {
  Runtime& rt = *runtime;
  for (;;) {
    if (rt.world.stopping() && !rt.world.leave(rt, m)) return nullptr;
    G* g = fire_own(rt, m);
    if (g != nullptr) {
      own_turn(m->p, g);
    } else {
      g = take_at_hand(rt, m);
    }
    if (g == nullptr) g = take_global_share(rt, m);
    if (g == nullptr) g = take_from_network(rt, m);
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
