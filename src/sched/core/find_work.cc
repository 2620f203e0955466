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
G* own_turn_of_inbox(P* p, G* g) {
  p->ticks_to_look = p->inbox.is_empty() && runtime->global.urgent() == 0 ? kLookEvery : 2;
  own_turn(p, g);
  p->inbox_tick = p->counters.ticks.read();
  return g;
}

// Goroutines that were stopped get a turn at once if there is nothing else, and else a part of the P's time: see sysmon_taking.cc.
G* take_stopped_if_due(P* p) {
  if (runtime->global.stopped() == 0 || base::now_ns() < p->stopped_again_ns) return nullptr;
  return runtime->global.pop_stopped();
}

// The P has work of its own and looks at everything else, of which it takes a little: from each line of the global queue and
// from the network.
[[gnu::noinline]] G* look_around(M* m) {
  P* p = m->p;
  // However often it is asked for: the ring has a turn in between.
  bool is_turn_of_ring = p->inbox_tick == p->counters.ticks.read() && p->queue.has_in_ring();
  if (is_turn_of_ring) {
    p->ticks_to_look = 1;
    return nullptr;
  }
  if (G* g = p->inbox.take()) return own_turn_of_inbox(p, g);
  p->ticks_to_look = kLookEvery;
  runtime->chaos.muddle(p);
  runtime->chaos.scatter(m);
  p->counters.looks.increment();
  if (G* g = take_stopped_if_due(p)) return own_turn(p, g);
  G* few[Inbox::kPlaces];
  // A P that is idle takes what there is itself.
  bool a_p_is_idle = runtime->search.view().idle != 0;
  // Else it leaves room for the network.
  std::size_t most = a_p_is_idle ? 2 : Inbox::kPlaces * 3 / 4;
  std::size_t count = runtime->global.pop_few(runtime->ps.count(), {few, most});
  if (count != 0) p->counters.global_batches.increment();
  for (std::size_t i = 0; i < count; ++i) p->inbox.put(few[i]);
  runtime->network.poll_if_overdue(m);
  G* g = p->inbox.take();
  return g == nullptr ? nullptr : own_turn_of_inbox(p, g);
}

// The chain in runnext has run for some turns, or sysmon finds it long enough.
[[gnu::noinline]] void end_chain_if_long(M* m) {
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
    put_last(m, g);  // the ring is not empty now
    wake_searcher(m);
  }
}

[[gnu::always_inline]] inline G* take_at_hand(M* m) {
  P* p = m->p;
  if (p->turns_to_clock <= 0) [[unlikely]]
    end_chain_if_long(m);
  if (p->ticks_to_look <= 0) [[unlikely]] {
    if (G* g = look_around(m)) return g;
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
  if (!p->inbox.is_empty()) return own_turn_of_inbox(p, p->inbox.take());
  return nullptr;
}

// The P has nothing of its own.
G* take_global_share(M* m) {
  P* p = m->p;
  G* share[RunQueue::kHalf];
  p->counters.looks.increment();
  if (G* g = take_stopped_if_due(p)) return own_turn(p, g);
  std::size_t count = runtime->global.pop_share(runtime->ps.count(), share);
  if (count == 0) {
    G* stopped = runtime->global.pop_stopped();
    return stopped == nullptr ? nullptr : own_turn(p, stopped);
  }
  p->counters.global_batches.increment();
  for (std::size_t i = 1; i < count; ++i) put_last(m, share[i]);
  p->queue.note_all_from_global();
  if (count > 1) wake_searcher(m);  // they were out of sight for a moment
  return own_turn(p, share[0]);
}

G* take_from_network(M* m) {
  G* g = runtime->network.poll(m);
  return g == nullptr ? nullptr : own_turn(m->p, g);
}

bool timer_is_due() {
  std::int64_t earliest = earliest_timer_ns();
  return earliest != kNever && earliest <= base::now_ns();
}

// A sleeping CPU takes tens of microseconds to wake, a searching one a tenth. So search on for about as long as it
// has paid before; a thread that found nothing the last times sleeps after a few rounds. Not for timers: whoever
// sleeps until the next one fires all that came due while it woke up.
bool search_on(M* m) {
  for (std::uint32_t round = 0; round < m->spin_budget; ++round) {
    for (int i = 0; i < kPausesPerRound; ++i) base::cpu_relax();
    if (runtime->world.stopping() || work_is_visible()) {
      m->spin_budget = std::min(m->spin_budget * 2, kSpinMost);
      return true;
    }
  }
  m->spin_budget = std::max(m->spin_budget / 2, kSpinLeast);
  return false;
}

// A searcher has found something: it is none any more, and starts the next.
void stop_searching(M* m) {
  runtime->chaos.disturb();
  m->searching = false;
  runtime->search.stop();
  wake_searcher(m);
}

// Gives the P up and goes on the list of sleeping threads. False: there is something to do after all.
bool lie_down(M* m) {
  std::lock_guard hold(runtime->idle.lock());
  if (runtime->world.stopping() || !runtime->global.empty()) return false;
  P* p = std::exchange(m->p, nullptr);
  p->counters.parks.increment();
  p->end_hold(base::now_ns());
  runtime->idle.push_locked(p);
  runtime->idle.push_locked(m);
  runtime->search.rest(m->searching ? Search::Was::searching : Search::Was::not_searching);
  m->searching = false;
  return true;
}

// After the second look found work: takes a P back to search, unless the M was handed one meanwhile, or none is idle.
bool get_up(M* m) {
  std::lock_guard hold(runtime->idle.lock());
  if (!m->listed || runtime->world.stopping()) return false;
  P* p = runtime->idle.pop_p_locked();
  if (p == nullptr) return false;
  runtime->idle.remove_locked(m);
  runtime->search.wake_searching();
  m->searching = true;
  begin_with(m, p);
  return true;
}

bool nobody_can_run() {
  std::lock_guard hold(runtime->idle.lock());
  return may_be_deadlock();
}

// If nothing ran between the two looks, all that is seen between them holds at one instant. Otherwise a goroutine that was
// running when the network was asked may wait for it since. Who runs counts a turn first, and is seen under Idle's lock.
bool is_deadlock() {
  std::uint64_t turns = all_turns();
  if (!nobody_can_run()) return false;
  return !runtime->network.is_waited_for() && !has_other_threads() && nobody_can_run() &&
         all_turns() == turns;
}

// A keeper of the watch goes to work. If the timer is far away sysmon finds somebody else in time, see timer_duty.h.
void hand_on_duty(M* m, std::int64_t next) {
  constexpr std::int64_t kSoonNs = 20'000'000;
  if (next - base::now_ns() <= kSoonNs || runtime->sysmon.helpers() == 0) wake_searcher(m);
}

// Gives the P up and sleeps. True: the M has a P again, not necessarily after sleeping; false: the runtime ends.
bool rest(M* m) {
  runtime->chaos.disturb();
  if (!lie_down(m)) return true;
  runtime->chaos.disturb();
  m->timer_owed_ns = kNever;  // [timer-duty] it looks at all timers now
  while (true) {
    runtime->search.before_second_look();
    if (work_is_visible() || timer_is_due()) {
      runtime->chaos.disturb();
      if (get_up(m)) return true;
      runtime->sysmon.look_soon();  // it was handed a P, or all Ps are held, maybe by loops
      break;
    }
    std::int64_t next = earliest_timer_ns();
    if (next == kNever && !runtime->network.is_waited_for() && is_deadlock()) [[unlikely]]
      report_deadlock();
    next = std::min(next, runtime->stacks.next_trim_ns());
    bool keeps = next != kNever && runtime->timer_duty.take(next);
    if (keeps) be_punctual(m);
    bool polled = runtime->network.sleep_in_poller(m, keeps ? next : kNever);
    if (!polled && !keeps) break;
    bool handed = !polled && m->wake_up.wait_until(next);
    if (keeps) runtime->timer_duty.end(next);
    if (handed) return go_on_as_handed(m);
    if (m->p != nullptr) {
      if (keeps) hand_on_duty(m, next);
      return true;
    }
    runtime->stacks.trim(base::now_ns());
  }
  return sleep_until_handed_a_p(m);
}

G* search(M* m) {
  if (!m->searching) {
    if (!runtime->search.try_start(runtime->ps.count())) return nullptr;
    m->searching = true;
  }
  m->p->counters.searches.increment();
  do {
    if (G* g = fire_others(m)) return own_turn(m->p, g);
    if (G* g = take_at_hand(m)) return g;  // readied by a timer that fired
    if (G* g = steal(m)) return own_turn(m->p, g);
  } while (search_on(m) && !runtime->world.stopping() && runtime->global.empty());
  return nullptr;
}

}  // namespace

std::uint64_t all_turns() {
  std::uint64_t turns = 0;
  for (P* p : runtime->ps.all()) turns += p->turns();
  return turns;
}

bool work_is_visible() {
  if (!runtime->global.empty()) return true;
  for (P* p : runtime->ps.in_use()) {
    if (!p->queue.looks_empty()) return true;
  }
  return false;
}

void look_again_for_others() {
  runtime->search.before_second_look();
  if (work_is_visible()) return wake_searcher(nullptr);
  std::int64_t earliest = earliest_timer_ns();
  if (earliest != kNever) see_to_timer(nullptr, earliest);
  if (runtime->network.in_use()) runtime->network.want_events();
}

bool loop_is_wanted(M* m) {
  return runtime->world.stopping() || (has_timers(m->p) && own_timers_are_due(m->p));
}

[[gnu::noinline]] static G* next_at_hand_slow(M* m) {
  if (loop_is_wanted(m) || runtime->chaos.one_in(8)) return nullptr;
  for (;;) {
    G* g = take_at_hand(m);
    if (g == nullptr || admit(m, g)) return g;
  }
}

// One that came from the next slot, and can be joined: maybe it was run in place.
[[gnu::noinline]] static G* admitted_or_another(M* m, G* g) {
  return admit(m, g) ? g : next_at_hand_slow(m);
}

// Most often nothing is in the way, and it is the one in the next slot, or the next of a claimed batch. These paths
// call nothing, so they save no registers.
G* next_at_hand(M* m) {
  P* p = m->p;
  bool plain = !runtime->world.stopping() && p->ticks_to_look > 0 && !has_timers(p);
  if (!plain) [[unlikely]]
    return next_at_hand_slow(m);
  if (p->queue.next.peek() != nullptr) {
    if (p->turns_to_clock <= 0) [[unlikely]]
      return next_at_hand_slow(m);
    G* g = p->queue.next.try_take();
    if (g == nullptr) [[unlikely]]  // a thief is at it, or was
      return next_at_hand_slow(m);
    p->turns_to_clock = p->turns_to_clock - 1;
    p->counters.inherited.increment();
    return g->joinable ? admitted_or_another(m, g) : g;
  }
  G* g = p->queue.upcoming();
  if (g != nullptr && !g->joinable) {
    p->queue.take_upcoming();
    return own_turn(p, g);
  }
  return next_at_hand_slow(m);
}

G* find_work(M* m) {
  for (;;) {
    if (runtime->world.stopping() && !runtime->world.give_up_p(m)) return nullptr;
    G* g = fire_own(m);
    if (g != nullptr) {
      own_turn(m->p, g);
    } else {
      g = take_at_hand(m);
    }
    if (g == nullptr) g = take_global_share(m);
    if (g == nullptr) g = take_from_network(m);
    if (g == nullptr) {
      std::int64_t since = base::now_ns();
      P* searched_with = m->p;
      g = search(m);
      searched_with->counters.searching_ns.add(static_cast<std::uint64_t>(base::now_ns() - since));
    }
    if (g == nullptr) {
      if (!rest(m)) return nullptr;
      continue;
    }
    if (m->searching) stop_searching(m);
    if (admit(m, g)) return g;
  }
}

}  // namespace magpie::sched
