#include "sched/taking/hand_off.h"

#include <utility>

#include "base/clock.h"
#include "base/guard.h"
#include "sched/rest/rest.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"
#include "sched/taking/bound.h"

namespace magpie::sched {
namespace {

constexpr std::int64_t kSurplusSleepNs = 2'000'000'000;

// Threads that were needed while others blocked. A few are kept, as what happened once may happen
// again. The thread that called run() stays.
bool is_surplus(const M* m) {
  constexpr int kKept = 4;
  bool called_run = m->older == nullptr;
  return !called_run &&
         runtime->idle.idle_threads() > static_cast<int>(runtime->ps.count()) + kKept;
}

// After a long sleep. True: the thread ends.
bool retire(M* m) {
  base::Guard hold(runtime->idle.lock());
  if (!m->rest.listed || !is_surplus(m)) return false;
  runtime->idle.remove_locked(m);
  m->is_over = true;
  return true;
}

}  // namespace

void begin_with(M* m, P* p) {
  m->p = p;
  m->rest.last_p = p;
  runtime->chaos.disturb();
  p->begin_hold(m, base::now_ns());
  if (traced()) [[unlikely]]
    trace_proc_begin(m);
  runtime->chaos.muddle(p);
  runtime->pins.bind(m);
  runtime->sysmon.wake_if_asleep();
}

void let_go(P* p) {
  runtime->chaos.disturb();
  p->end_hold(base::now_ns());
  bool queued = !p->is_empty();
  {
    base::Guard hold(runtime->idle.lock());
    // the thread that starts the world again sees to the queue
    if (runtime->world.stopping()) queued = false;
    if (!queued) runtime->world.take_back_locked(p);
  }
  if (queued) {
    if (traced()) trace_handed_over(p);
    return start_thread_for(p, Searching::no);
  }
  look_again_for_others();
}

void start_thread_for(P* p, Searching searching) {
  runtime->chaos.disturb();
  M* m;
  {
    base::Guard hold(runtime->idle.lock());
    m = runtime->idle.take_m_locked(p);
  }
  bool counted = searching == Searching::yes;
  if (m != nullptr) {
    m->rest.handed = p;
    m->rest.handed_searching = counted;
    wake(m);
    return;
  }
  if (!runtime->threads.start(p, searching)) do_without_thread(p, searching);
}

void do_without_thread(P* p, Searching searching) {
  move_queue_to_global(p);  // goroutines in its queue must not wait for a thread
  G* bound = runtime->world.stopping() ? nullptr : take_bound();
  M* its = bound == nullptr ? nullptr : hand_p_to_thread_of(p, bound);
  {
    base::Guard hold(runtime->idle.lock());
    if (searching == Searching::yes) runtime->idle.unbook_searcher_locked();
    if (its == nullptr) runtime->world.take_back_locked(p);
  }
  if (its != nullptr) wake(its);
  // Threads that are awake look before they sleep. If all of them compute, sysmon tries again.
  if (its != nullptr || runtime->idle.idle_threads() != 0) look_again_for_others();
  runtime->sysmon.wake_if_asleep();
}

bool no_thread_comes() {
  return runtime->idle.idle_threads() == 0 && runtime->threads.are_refused();
}

void move_queue_to_global(P* p) {
  G* all[RunQueue::kSlots + Inbox::kPlaces + 1];
  std::size_t count = 0;
  if (G* g = p->queue.next.take()) all[count++] = g;
  while (G* g = p->inbox.take()) all[count++] = g;
  while (G* g = p->queue.pop()) all[count++] = g;
  runtime->global.push_front(p->home.node_number, {all, count});
}

bool wait_for_p(M* m) {
  if (m->is_over) return false;
  {
    base::Guard hold(runtime->idle.lock());
    if (runtime->world.ending()) return false;
    runtime->idle.list_locked(m);
  }
  return sleep_until_handed_a_p(m);
}

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
  m->rest.in_poller = false;
  P* p = std::exchange(m->rest.handed, nullptr);
  m->searching = std::exchange(m->rest.handed_searching, false);
  if (p == nullptr) return false;
  begin_with(m, p);
  return true;
}

void note_back(M* m) {
  m->grip.set_own();
  runtime->without_p.remove();
}

bool take_idle_p(M* m) {
  P* p;
  {
    base::Guard hold(runtime->idle.lock());
    p = runtime->world.stopping() ? nullptr : runtime->idle.take_p_locked(m->rest.last_p);
    if (p == nullptr) return false;
  }
  begin_with(m, p);
  note_back(m);
  if (traced()) [[unlikely]]
    trace_back(m);
  return true;
}

void wake_successor(M* m, int cpu) {
  if (M* next = m->successor.take()) {
    next->rest.handed->free_cpu = cpu;
    wake(next);
  }
}

}  // namespace magpie::sched
