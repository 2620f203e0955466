#include "sched/bound.h"

#include <mutex>
#include <utility>

#include "base/clock.h"
#include "sched/current.h"
#include "sched/find_work.h"
#include "sched/free_cpu.h"
#include "sched/loop.h"
#include "sched/queues.h"
#include "sched/runtime.h"
#include "sched/timers.h"
#include "sched/wake.h"

namespace magpie::sched {
namespace {

// Off the list of those who wait, with a P or, when the runtime ends, without.
bool sleep_in_place(Runtime& rt, M* m) {
  m->wake_up.wait();
  P* p = std::exchange(m->handed, nullptr);
  if (p == nullptr) return false;
  begin_with(rt, m, p);
  use_free_cpu(rt, m);
  return true;
}

// False: the runtime ends.
bool get_in_place(Runtime& rt, M* m) {
  std::lock_guard hold(rt.idle.lock());
  if (rt.world.ending()) return false;
  m->waits_in_place = true;
  return true;
}

}  // namespace

void let_go(Runtime& rt, P* p) {
  rt.chaos.disturb();
  p->end_hold(base::now_ns());
  bool queued = !p->queue.is_empty();
  {
    std::lock_guard hold(rt.idle.lock());
    if (rt.world.stopping()) queued = false;  // whoever starts it again sees to the queue
    if (!queued) rt.world.take_back_locked(rt, p);
  }
  if (queued) return start_thread_for(rt, p, Searching::no);
  look_again_for_others(rt);
}

// Without a P the M's loop leaves for the thread, see loop().
void end_bound(M* m) {
  m->thread_locks = 0;
  bool called_run = m->older == nullptr;
  if (called_run) return;
  m->is_over = true;
  let_go(*runtime, std::exchange(m->p, nullptr));
  runtime->threads.note_ended(m);
}

void wake_successor(Runtime& rt, M* m, int cpu) {
  if (m->successor.load(base::relaxed) == nullptr) return;
  if (M* next = m->successor.exchange(nullptr, base::acquire)) {
    next->handed->free_cpu = cpu;
    wake(rt, next);
  }
}

void begin_with(Runtime& rt, M* m, P* p) {
  m->p = p;
  rt.chaos.disturb();
  p->begin_hold(m, base::now_ns());
  rt.chaos.muddle(p);
  rt.pins.bind(m);
  rt.sysmon.wake_if_asleep();
}

void is_back(Runtime& rt, M* m) {
  m->grip.has_p();
  rt.away.fetch_sub(1, base::seq_cst);
}

bool take_idle_p(Runtime& rt, M* m) {
  P* p;
  {
    std::lock_guard hold(rt.idle.lock());
    p = rt.world.stopping() ? nullptr : rt.idle.pop_p_locked();
    if (p == nullptr) return false;
    rt.search.wake_counted();
  }
  begin_with(rt, m, p);
  is_back(rt, m);
  return true;
}

bool wait_for_p(Runtime& rt, M* m) {
  if (m->is_over) return false;
  {
    std::lock_guard hold(rt.idle.lock());
    if (rt.world.ending()) return false;
    rt.idle.push_locked(m);
  }
  return sleep_until_handed_a_p(rt, m);
}

bool wait_in_place(Runtime& rt, M* m, Line line) {
  m->p = nullptr;
  if (take_idle_p(rt, m)) {
    wake_successor(rt, m, kAnyCpu);
    return true;
  }
  G* g = m->current;
  bool was_bound = g->bound;
  g->bound = true;
  g->thread = m;
  if (!get_in_place(rt, m)) {
    wake_successor(rt, m, kAnyCpu);
    g->bound = was_bound;
    return false;
  }
  GState before = g->state.load(base::relaxed);  // running, or its body is over
  if (before == GState::running) g->state.store(GState::runnable, base::relaxed);
  if (line == Line::held) {
    rt.preempted.fetch_add(1, base::relaxed);
    rt.global.push_held(g);
  } else {
    rt.global.push_urgent(g);
  }
  rt.chaos.disturb();
  is_back(rt, m);
  wake_successor(rt, m, this_cpu());
  wake_searcher(rt, nullptr);
  bool has_p = sleep_in_place(rt, m);
  if (!has_p) m->grip.has_none();
  if (line == Line::held) rt.preempted.fetch_sub(1, base::relaxed);
  g->bound = was_bound;
  g->state.store(before, base::relaxed);
  return has_p;
}

M* hand_p_to_thread_of(Runtime& rt, P* p, G* g) {
  M* its = g->thread;
  std::lock_guard hold(rt.idle.lock());
  if (!its->waits_in_place) return nullptr;
  its->waits_in_place = false;
  its->handed = p;
  return its;
}

bool pass_p_to_thread_of(Runtime& rt, M* m, G* g) {
  P* p = std::exchange(m->p, nullptr);
  p->end_hold(base::now_ns());
  M* its = hand_p_to_thread_of(rt, p, g);
  if (its == nullptr) return false;
  its->wake_up.set();
  return wait_for_p(rt, m);
}

void park_bound(M* m, G* g, Commit commit, void* argument) {
  Runtime& rt = *runtime;
  g->thread = m;
  if (!get_in_place(rt, m)) leave_for_good(m);
  // The thread itself runs the commit step. Whoever wakes the goroutine meanwhile hands this thread another P.
  if (!commit(m, g, argument)) {
    g->move(GState::waiting, GState::runnable);
    put_last(rt, m, g);
  }
  pay_watch(rt, m);
  rt.chaos.disturb();
  let_go(rt, std::exchange(m->p, nullptr));
  if (!sleep_in_place(rt, m)) leave_for_good(m);
  g->state.store(GState::running, base::relaxed);
}

void yield_bound(M* m, G* g) {
  g->move(GState::running, GState::waiting);
  park_bound(
      m, g, [](M*, G*, void*) { return false; }, nullptr);
}

}  // namespace magpie::sched
