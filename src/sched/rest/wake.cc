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

void start_searcher(M* m) {
  runtime->chaos.disturb();
  P* p;
  {
    std::lock_guard hold(runtime->idle.lock());
    p = runtime->world.stopping() ? nullptr : runtime->idle.pop_p_locked();
    if (p == nullptr) {
      runtime->search
          .stop();  // all Ps are held after all; whoever lets one go from now on looks at the queues
      return;
    }
    runtime->search.wake_counted();
  }
  if (m == nullptr || m->p == nullptr) return start_thread_for(p, Searching::yes);
  // That takes microseconds. The new searcher must not take them for a sign that what is in our next slot is stuck.
  m->p->counters.wakes.increment();
  m->p->waking.store(true, base::relaxed);
  start_thread_for(p, Searching::yes);
  m->p->waking.store(false, base::relaxed);
}

void start_thread_for(P* p, Searching searching) {
  runtime->chaos.disturb();
  M* m;
  {
    std::lock_guard hold(runtime->idle.lock());
    m = runtime->idle.pop_m_locked();
  }
  bool counted = searching == Searching::yes;
  if (m != nullptr) {
    m->handed = p;
    m->handed_searching = counted;
    wake(m);
    return;
  }
  if (!runtime->threads.start(p, searching)) do_without_thread(p, searching);
}

void wake(M* m) {
  runtime->chaos.disturb();
  bool polls = m->sleeps_in_poller;
  m->wake_up.set();
  if (polls) runtime->network.interrupt();
}

G* take_bound() {
  for (;;) {
    G* g = runtime->global.take_bound();
    if (g == nullptr || admit(nullptr, g)) return g;
  }
}

void do_without_thread(P* p, Searching searching) {
  move_queue_to_global(p);  // what is in its queue must not wait for a thread
  G* bound = runtime->world.stopping() ? nullptr : take_bound();
  M* its = bound == nullptr ? nullptr : hand_p_to_thread_of(p, bound);
  {
    std::lock_guard hold(runtime->idle.lock());
    if (searching == Searching::yes) runtime->search.stop();
    if (its == nullptr) runtime->world.take_back_locked(p);
  }
  if (its != nullptr) wake(its);
  // Those who are awake look before they sleep. If all of them compute, sysmon tries again.
  if (its != nullptr || runtime->idle.idle_threads() != 0) look_again_for_others();
  runtime->sysmon.wake_if_asleep();
}

bool no_thread_comes() {
  return runtime->idle.idle_threads() == 0 && runtime->threads.are_refused();
}

namespace {

// Threads that were needed while others blocked. A few are kept, as what happened once may happen again.
// The thread that called run() stays.
bool is_surplus(const M* m) {
  constexpr int kKept = 4;
  bool called_run = m->older == nullptr;
  return !called_run &&
         runtime->idle.idle_threads() > static_cast<int>(runtime->ps.count()) + kKept;
}

// After a long sleep. True: the thread ends.
bool retire(M* m) {
  std::lock_guard hold(runtime->idle.lock());
  if (!m->listed || !is_surplus(m)) return false;
  runtime->idle.remove_locked(m);
  m->is_over = true;
  return true;
}

}  // namespace

bool sleep_until_handed_a_p(M* m) {
  while (is_surplus(m)) {
    if (m->wake_up.wait_until(base::now_ns() + kSurplusSleepNs)) return go_on_as_handed(m);
    if (retire(m)) {
      runtime->threads.note_ended(m);
      return false;
    }
  }
  m->wake_up.wait();
  return go_on_as_handed(m);
}

bool go_on_as_handed(M* m) {
  m->sleeps_in_poller = false;
  P* p = std::exchange(m->handed, nullptr);
  m->searching = std::exchange(m->handed_searching, false);
  if (p == nullptr) return false;
  begin_with(m, p);
  return true;
}

void move_queue_to_global(P* p) {
  G* all[RunQueue::kSlots + Inbox::kPlaces + 1];
  std::size_t count = 0;
  if (G* g = p->queue.next.take()) all[count++] = g;
  while (G* g = p->inbox.take()) all[count++] = g;
  while (G* g = p->queue.pop()) all[count++] = g;
  runtime->global.push_front({all, count});
}

}  // namespace magpie::sched
