#include "sched/core/find_work.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/cpu.h"
#include "sched/core/queues.h"
#include "sched/core/steal.h"
#include "sched/policy.h"
#include "sched/rest/fire.h"
#include "sched/rest/rest.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"

namespace magpie::sched {
namespace {

using policy::kLookEvery, policy::kTurnsPerClock, policy::kTicksPerClock;

constexpr std::uint64_t kPrefetchAhead = 6;

// g, from anywhere but runnext, begins a turn of its own.
inline G* own_turn(P* p, G* g) {
  p->turns_to_clock = kTurnsPerClock;
  p->ticks_to_look = p->ticks_to_look - 1;
  p->counters.ticks.increment();
  return g;
}

// g, from runnext, goes on in the turn of the goroutine that woke it.
inline G* inherited_turn(P* p, G* g) {
  p->turns_to_clock = p->turns_to_clock - 1;
  p->counters.inherited.increment();
  return g;
}

G* own_turn_of_inbox(P* p, G* g) {
  bool both_are_empty = p->inbox.is_empty() && runtime->global.urgent() == 0;
  p->ticks_to_look = policy::ticks_after_inbox(both_are_empty);
  note_place(p, Place::inbox);
  own_turn(p, g);
  p->inbox_tick = p->counters.ticks.read();
  return g;
}

GlobalQueue::Taker taker_of(const P* p) {
  return {p->home.node_number, p->home.node.size(), runtime->ps.count()};
}

// The entry is surely the goroutine's own, and not left behind by a joiner.
G* take_stopped(M* m) {
  G* g = runtime->global.pop_stopped();
  if (g == nullptr) return nullptr;
  note_place(m->p, Place::stopped);
  if (g->joinable) m->from_stopped = g;
  return own_turn(m->p, g);
}

// A stopped goroutine has a turn at once if there is nothing else. Otherwise it has a part of the
// P's time: see sysmon_taking.cc.
G* take_stopped_if_due(M* m) {
  bool is_due = runtime->global.stopped() != 0 && base::now_ns() >= m->p->stopped_again_ns;
  return is_due ? take_stopped(m) : nullptr;
}

// The P has work of its own. Its M looks at everything else, and takes a little from each line of
// the global queue and from the network.
[[gnu::noinline]] G* look_around(M* m) {
  P* p = m->p;
  // The ring has a turn in between, however often a look is asked for.
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
  if (traced()) trace_queue(p);
  if (G* g = take_stopped_if_due(m)) return g;
  G* few[Inbox::kPlaces];
  bool a_p_is_idle = runtime->search.view().idle != 0;
  std::size_t most = policy::most_at_look(a_p_is_idle || !may_set_aside(p));
  std::size_t count = runtime->global.pop_few(taker_of(p), {few, most});
  if (count != 0) {
    p->counters.global_batches.increment();
    if (traced()) trace_p(p, Kind::global_take, count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    bool is_for_holder = i == 0 || may_set_aside(p);  // the M runs the first one at once
    if (is_for_holder) {
      p->inbox.put(few[i]);
    } else {
      put_last(m, few[i]);
      wake_searcher(m);
    }
  }
  runtime->network.poll_if_overdue(m);
  G* g = p->inbox.take();
  return g == nullptr ? nullptr : own_turn_of_inbox(p, g);
}

// The chain in runnext has run for some turns, or sysmon has asked for its end.
[[gnu::noinline]] void end_chain_if_long(M* m) {
  P* p = m->p;
  p->turns_to_clock = kTurnsPerClock;
  p->ticks_to_look = p->ticks_to_look - kTicksPerClock;
  bool is_asked = p->chain_must_end.load(base::relaxed);
  if (is_asked) p->chain_must_end.store(false, base::relaxed);
  using policy::ChainClock;
  auto because = is_asked ? ChainClock::Because::sysmon_asks : ChainClock::Because::turns_passed;
  auto verdict = p->chain_clock.look(p->counters.ticks.read(), base::now_ns(), because);
  if (verdict == ChainClock::Verdict::goes_on) return;
  p->ticks_to_look = 0;
  if (G* g = p->queue.next.take()) {
    put_last(m, g);  // the ring is not empty now
    wake_searcher(m);
  }
}

// Steps 3 to 6: goroutines that the P has itself.
[[gnu::always_inline]] inline G* take_at_hand(M* m) {
  P* p = m->p;
  if (p->turns_to_clock <= 0) [[unlikely]]
    end_chain_if_long(m);
  if (p->ticks_to_look <= 0) [[unlikely]] {
    if (G* g = look_around(m)) return g;
  }
  if (G* g = p->queue.next.take()) return inherited_turn(p, g);
  if (G* g = p->queue.pop()) {
    // Another core wrote its record, most likely, or it was written long ago. So fetch a later one
    // now.
    if (G* soon = p->queue.ahead(kPrefetchAhead)) prefetch(soon);
    return own_turn(p, g);
  }
  if (!p->inbox.is_empty()) return own_turn_of_inbox(p, p->inbox.take());
  return nullptr;
}

// Step 2.
G* take_due_timer(M* m) {
  G* g = fire_own(m);
  if (g != nullptr) note_place(m->p, Place::fresh);
  return g == nullptr ? nullptr : own_turn(m->p, g);
}

// Step 7: the P has nothing of its own.
G* take_global_share(M* m) {
  P* p = m->p;
  p->counters.looks.increment();
  if (runtime->global.empty()) return nullptr;
  G* share[RunQueue::kHalf];
  if (G* g = take_stopped_if_due(m)) return g;
  std::size_t count = runtime->global.pop_share(taker_of(p), share);
  if (count == 0) return take_stopped(m);
  p->counters.global_batches.increment();
  if (traced()) trace_p(p, Kind::global_take, count);
  note_place(p, Place::global);
  for (std::size_t i = 1; i < count; ++i) put_last(m, share[i]);
  p->queue.note_all_from_global();
  if (count > 1) wake_searcher(m);  // searchers could not see them for a moment
  return own_turn(p, share[0]);
}

// Step 8.
G* take_from_network(M* m) {
  G* g = runtime->network.poll(m);
  if (g != nullptr) note_place(m->p, Place::fresh);
  return g == nullptr ? nullptr : own_turn(m->p, g);
}

// A sleeping CPU takes tens of microseconds to wake, a searching CPU a tenth of a microsecond. So
// an M searches for about as long as it has paid before. An M that found nothing the last times
// sleeps after a few rounds. Timers do not count: the M with the timer duty fires all timers that
// came due while it woke up.
bool search_on(M* m) {
  auto start = static_cast<std::uint32_t>(m->p->index);
  for (std::uint32_t round = 0; round < m->spin_budget; ++round) {
    for (int i = 0; i < policy::kPausesPerRound; ++i) base::cpu_relax();
    m->tip = find_visible_work(start, policy::kLooksPerSpin);
    start += policy::kLooksPerSpin;
    if (runtime->world.stopping() || m->tip != nullptr || !runtime->global.empty()) {
      m->spin_budget = policy::budget_after_success(m->spin_budget);
      return true;
    }
  }
  m->spin_budget = policy::budget_after_failure(m->spin_budget);
  return false;
}

G* search_as_searcher(M* m) {
  do {
    if (G* g = fire_others(m)) {
      note_place(m->p, Place::fresh);
      return own_turn(m->p, g);
    }
    if (G* g = take_at_hand(m)) return g;  // a timer that fired readied it
    if (G* g = steal(m)) {
      note_place(m->p, Place::stolen);
      return own_turn(m->p, g);
    }
  } while (search_on(m) && !runtime->world.stopping() && runtime->global.empty());
  return nullptr;
}

// Step 9.
G* search(M* m) {
  if (!m->searching && !runtime->idle.try_begin_search(m, runtime->ps.count())) return nullptr;
  P* p = m->p;
  p->counters.searches.increment();
  if (traced()) trace_p(p, Kind::search_begin);
  std::int64_t since = base::now_ns();
  G* g = search_as_searcher(m);
  if (traced()) trace_p(p, Kind::search_end, g != nullptr ? 1 : 0);
  p->counters.searching_ns.add(static_cast<std::uint64_t>(base::now_ns() - since));
  return g;
}

// A searcher found work. It stops searching, and wakes the next searcher.
void stop_searching(M* m) {
  runtime->chaos.disturb();
  runtime->idle.end_search(m);
  wake_searcher(m);
}

}  // namespace

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

// g came from runnext and can be joined. Its joiner may have run it in place.
[[gnu::noinline]] static G* admitted_or_another(M* m, G* g) {
  return admit(m, g) ? g : next_at_hand_slow(m);
}

// Handles the two most frequent outcomes of take_at_hand() when nothing is in their way: the
// goroutine in runnext, or the next one of the reserved batch. These paths call nothing, so
// they save no registers.
G* next_at_hand(M* m) {
  P* p = m->p;
  bool plain = !runtime->world.stopping() && p->ticks_to_look > 0 && !has_timers(p);
  if (!plain) [[unlikely]]
    return next_at_hand_slow(m);
  if (p->queue.next.peek() != nullptr) {
    if (p->turns_to_clock <= 0) [[unlikely]]
      return next_at_hand_slow(m);
    G* g = p->queue.next.try_take();
    if (g == nullptr) [[unlikely]]  // a thief uses the slot, or emptied it
      return next_at_hand_slow(m);
    inherited_turn(p, g);
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
    G* g = take_due_timer(m);
    if (g == nullptr) g = take_at_hand(m);
    if (g == nullptr) g = take_global_share(m);
    if (g == nullptr) g = take_from_network(m);
    if (g == nullptr) g = search(m);
    if (g == nullptr) {
      if (!rest(m)) return nullptr;
      continue;
    }
    if (m->searching) stop_searching(m);
    if (admit(m, g)) return g;
  }
}

}  // namespace magpie::sched
