#include "sched/rest/rest.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/guard.h"
#include "sched/core/queues.h"
#include "sched/rest/bystanders.h"
#include "sched/rest/deadlock.h"
#include "sched/rest/fire.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"
#include "sched/taking/hand_off.h"

namespace magpie::sched {
namespace {

// Complete: m is about to sleep. It begins elsewhere than other Ms do.
bool sees_work(M* m) {
  m->tip = find_visible_work(static_cast<std::uint32_t>(m->number), kAllPs);
  return m->tip != nullptr || !runtime->global.empty();
}

// Gives the P up and goes on the list of sleeping Ms. False: there is something to do after all.
bool lie_down(M* m) {
  base::Guard hold(runtime->idle.lock());
  if (runtime->world.stopping() || !runtime->global.empty()) return false;
  P* p = std::exchange(m->p, nullptr);
  p->counters.parks.increment();
  if (traced()) trace_p(p, Kind::thread_park);
  p->end_hold(base::now_ns());
  runtime->idle.rest_locked(p, m);
  return true;
}

// Takes a P back to search with. False: m was handed a P meanwhile, or none is idle.
bool get_up(M* m) {
  base::Guard hold(runtime->idle.lock());
  if (!m->rest.listed || runtime->world.stopping()) return false;
  P* p = runtime->idle.take_p_to_search_locked(m);
  if (p == nullptr) return false;
  begin_with(m, p);
  return true;
}

bool nobody_can_run() {
  base::Guard hold(runtime->idle.lock());
  return may_be_deadlock();
}

// If nothing ran between the two looks, everything seen between them holds at one instant.
// Otherwise a goroutine may have run while the network was asked, and may now wait for the network.
// A goroutine that runs counts a turn first, and its P is seen under Idle's lock.
bool is_deadlock() {
  std::uint32_t change = changes_of_threads();
  if (outsiders_came() && others_were_seen()) return false;
  std::uint64_t turns = all_turns();
  std::uint32_t visits = count_visits();
  if (!nobody_can_run() || runtime->network.is_waited_for()) return false;
  bool some_end = some_are_ending();  // before the count, which omits what is gone
  OtherThreads others = look_for_other_threads();
  if (others == OtherThreads::unknown || (others == OtherThreads::some && some_end)) {
    look_for_deadlock_again(turns);
  } else if (others == OtherThreads::some) {
    note_others(change);
  }
  return others == OtherThreads::none && nobody_can_run() && all_turns() == turns &&
         count_visits() == visits;
}

// The M that had the timer duty goes to work. If the timer is far away, sysmon finds another M in
// time.
void hand_on_duty(M* m, std::int64_t next_ns) {
  constexpr std::int64_t kSoonNs = 20'000'000;
  if (next_ns - base::now_ns() <= kSoonNs) wake_searcher(m);
}

// How an M woke that had the timer duty, slept in the poller, or both.
enum class Woke {
  with_p,         // by events of the network: it has taken a P for them
  handed,         // another thread handed it a P, or the runtime ends
  for_no_reason,  // a timer is due, stacks are to be trimmed, a deadlock is to be looked for, or
                  // another M runs the events
  did_not_sleep   // other Ms have both duties
};

Woke sleep_with_a_duty(M* m) {
  std::int64_t next_ns =
      std::min({earliest_timer_ns(), runtime->stacks.next_trim_ns(), next_look_for_deadlock_ns()});
  bool has_duty = next_ns != kNever && runtime->timer_duty.take(next_ns);
  if (has_duty) be_punctual(m);
  Network::Slept slept = runtime->network.sleep_in_poller(m, has_duty ? next_ns : kNever);
  if (slept == Network::Slept::not_there && !has_duty) return Woke::did_not_sleep;
  bool was_handed = slept == Network::Slept::not_there && m->wake_up.wait_until(next_ns);
  if (has_duty) runtime->timer_duty.end(next_ns);
  if (was_handed) return Woke::handed;
  if (slept != Network::Slept::with_p) return Woke::for_no_reason;
  if (has_duty) hand_on_duty(m, next_ns);
  return Woke::with_p;
}

}  // namespace

void report_if_deadlock() {
  forget_next_look_for_deadlock();  // it is now
  if (earliest_timer_ns() == kNever && !runtime->network.is_waited_for() && is_deadlock())
      [[unlikely]]
    report_deadlock();
}

void let_another_look_for_deadlock() {
  if (nobody_can_run()) wake_searcher(nullptr);
}

bool rest(M* m) {
  runtime->chaos.disturb();
  if (!lie_down(m)) return true;
  runtime->chaos.disturb();
  m->timer_owed_ns = kNever;  // [timer-duty] m looks at all timers now
  for (;;) {
    runtime->search.before_second_look();
    if (sees_work(m) || sees_due_timer(m)) {
      runtime->chaos.disturb();
      if (get_up(m)) return true;
      runtime->sysmon.look_soon();  // m was handed a P, or all Ps are held, maybe by loops
      return sleep_until_handed_a_p(m);
    }
    report_if_deadlock();
    switch (sleep_with_a_duty(m)) {
      case Woke::with_p:
        return true;
      case Woke::handed:
        return go_on_as_handed(m);
      case Woke::did_not_sleep:
        return sleep_until_handed_a_p(m);
      case Woke::for_no_reason:
        runtime->stacks.trim(base::now_ns());
    }
  }
}

void look_again_for_others() {
  runtime->search.before_second_look();
  if (work_is_visible()) return wake_searcher(nullptr);
  std::int64_t earliest = earliest_timer_ns();
  if (earliest != kNever) see_to_timer(nullptr, earliest);
  if (runtime->network.in_use()) runtime->network.want_events();
}

P* find_visible_work(std::uint32_t start, std::uint32_t most) {
  std::span<P* const> ps = runtime->ps.in_use();
  auto count = static_cast<std::uint32_t>(ps.size());
  start %= count;
  for (auto [at, end] : {std::pair{start, count}, std::pair{0u, start}}) {
    // [search-or-sleep] after before_second_look(); other side: Idle, which clears the bit of a P
    // before its holder can publish
    while ((at = runtime->idle.mask().next_busy(at, end)) < end) {
      if (!ps[at]->queue.looks_empty()) return ps[at];
      if (--most == 0) return nullptr;
      ++at;
    }
  }
  return nullptr;
}

bool work_is_visible() {
  return !runtime->global.empty() || find_visible_work(0, kAllPs) != nullptr;
}

std::uint64_t all_turns() {
  std::uint64_t turns = 0;
  for (P* p : runtime->ps.all()) turns += p->turns();
  return turns;
}

}  // namespace magpie::sched
