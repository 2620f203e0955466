#include "sched/rest/wake.h"

#include <mutex>
#include <utility>

#include "base/clock.h"
#include "sched/core/find_work.h"
#include "sched/core/queues.h"
#include "sched/run/runtime.h"
#include "sched/taking/bound.h"

namespace magpie::sched {

namespace {
constexpr std::int64_t kSurplusSleepNs = 2'000'000'000;
}

void start_searcher(Runtime& rt, M* m) {
  rt.chaos.disturb();
  P* p;
  {
    std::lock_guard hold(rt.idle.lock());
    p = rt.world.stopping() ? nullptr : rt.idle.pop_p_locked();
    if (p == nullptr) {
      rt.search
          .stop();  // all Ps are held after all; whoever lets one go from now on looks at the queues
      return;
    }
    rt.search.wake_counted();
  }
  if (m == nullptr || m->p == nullptr) return start_thread_for(rt, p, Searching::yes);
  // That takes microseconds. The new searcher must not take them for a sign that what is in our next slot is stuck.
  m->p->counters.wakes.increment();
  m->p->waking.store(true, base::relaxed);
  start_thread_for(rt, p, Searching::yes);
  m->p->waking.store(false, base::relaxed);
}

void start_thread_for(Runtime& rt, P* p, Searching searching) {
  rt.chaos.disturb();
  M* m;
  {
    std::lock_guard hold(rt.idle.lock());
    m = rt.idle.pop_m_locked();
  }
  bool counted = searching == Searching::yes;
  if (m != nullptr) {
    m->handed = p;
    m->handed_searching = counted;
    wake(rt, m);
    return;
  }
  if (!rt.threads.start(p, searching)) do_without_thread(rt, p, searching);
}

void wake(Runtime& rt, M* m) {
  rt.chaos.disturb();
  bool polls = m->sleeps_in_poller;
  m->wake_up.set();
  if (polls) rt.network.interrupt();
}

G* take_bound(Runtime& rt) {
  for (;;) {
    G* g = rt.global.take_bound();
    if (g == nullptr || admit(nullptr, g)) return g;
  }
}

void do_without_thread(Runtime& rt, P* p, Searching searching) {
  move_queue_to_global(rt, p);  // what is in its queue must not wait for a thread
  G* bound = rt.world.stopping() ? nullptr : take_bound(rt);
  M* its = bound == nullptr ? nullptr : hand_p_to_thread_of(rt, p, bound);
  {
    std::lock_guard hold(rt.idle.lock());
    if (searching == Searching::yes) rt.search.stop();
    if (its == nullptr) rt.world.take_back_locked(rt, p);
  }
  if (its != nullptr) wake(rt, its);
  // Those who are awake look before they sleep. If all of them compute, sysmon tries again.
  if (its != nullptr || rt.idle.sleeping_threads() != 0) look_again_for_others(rt);
  rt.sysmon.wake_if_asleep();
}

bool no_thread_comes(const Runtime& rt) {
  return rt.idle.sleeping_threads() == 0 && rt.threads.are_refused();
}

namespace {

// Threads that were needed while others blocked. A few are kept, as what happened once may happen again.
// The thread that called run() stays.
bool is_surplus(Runtime& rt, const M* m) {
  constexpr int kKept = 4;
  bool called_run = m->older == nullptr;
  return !called_run && rt.idle.sleeping_threads() > static_cast<int>(rt.ps.count()) + kKept;
}

// After a long sleep. True: the thread ends.
bool retire(Runtime& rt, M* m) {
  std::lock_guard hold(rt.idle.lock());
  if (!m->listed || !is_surplus(rt, m)) return false;
  rt.idle.remove_locked(m);
  m->is_over = true;
  return true;
}

}  // namespace

bool sleep_until_handed_a_p(Runtime& rt, M* m) {
  while (is_surplus(rt, m)) {
    if (m->wake_up.wait_until(base::now_ns() + kSurplusSleepNs)) return go_on_as_handed(rt, m);
    if (retire(rt, m)) {
      rt.threads.note_ended(m);
      return false;
    }
  }
  m->wake_up.wait();
  return go_on_as_handed(rt, m);
}

bool go_on_as_handed(Runtime& rt, M* m) {
  m->sleeps_in_poller = false;
  P* p = std::exchange(m->handed, nullptr);
  m->searching = std::exchange(m->handed_searching, false);
  if (p == nullptr) return false;
  begin_with(rt, m, p);
  return true;
}

void move_queue_to_global(Runtime& rt, P* p) {
  G* all[RunQueue::kSlots + Inbox::kPlaces + 1];
  std::size_t count = 0;
  if (G* g = p->queue.next.take()) all[count++] = g;
  while (G* g = p->inbox.take()) all[count++] = g;
  while (G* g = p->queue.pop()) all[count++] = g;
  rt.global.push_front({all, count});
}

}  // namespace magpie::sched
