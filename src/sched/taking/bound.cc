#include "sched/taking/bound.h"

#include <mutex>
#include <utility>

#include "base/clock.h"
#include "sched/core/find_work.h"
#include "sched/core/loop.h"
#include "sched/core/queues.h"
#include "sched/current.h"
#include "sched/rest/fire.h"
#include "sched/rest/wake.h"
#include "sched/run/runtime.h"
#include "sched/taking/free_cpu.h"

namespace magpie::sched {
namespace {

Goes sleep_in_place(M* m) {
  m->wake_up.wait();
  P* p;
  if (Goes goes = m->in_place.take_what_came(m->handed, p); goes != Goes::with_p) return goes;
  begin_with(m, p);
  use_free_cpu(m);
  return Goes::with_p;
}

// False: the runtime ends.
bool get_in_place(M* m) {
  std::lock_guard hold(runtime->idle.lock());
  if (runtime->world.ending()) return false;
  m->in_place.begin_locked();
  return true;
}

}  // namespace

void let_go(P* p) {
  runtime->chaos.disturb();
  p->end_hold(base::now_ns());
  bool queued = !p->is_empty();
  {
    std::lock_guard hold(runtime->idle.lock());
    if (runtime->world.stopping()) queued = false;  // whoever starts it again sees to the queue
    if (!queued) runtime->world.take_back_locked(p);
  }
  if (queued) return start_thread_for(p, Searching::no);
  look_again_for_others();
}

// Without a P the M's loop leaves for the thread, see loop().
void end_bound(M* m) {
  m->thread_locks = 0;
  bool called_run = m->older == nullptr;
  if (called_run) return;
  m->is_over = true;
  P* p = std::exchange(m->p, nullptr);
  // Before the P looks for another thread: that one may need this one's place under the limit.
  runtime->threads.note_ended(m);
  let_go(p);
}

void wake_successor(M* m, int cpu) {
  if (M* next = m->successor.take()) {
    next->handed->free_cpu = cpu;
    wake(next);
  }
}

void begin_with(M* m, P* p) {
  m->p = p;
  runtime->chaos.disturb();
  p->begin_hold(m, base::now_ns());
  runtime->chaos.muddle(p);
  runtime->pins.bind(m);
  runtime->sysmon.wake_if_asleep();
}

void note_back(M* m) {
  m->grip.set_own();
  runtime->away.fetch_sub(1, base::seq_cst);
}

bool take_idle_p(M* m) {
  P* p;
  {
    std::lock_guard hold(runtime->idle.lock());
    p = runtime->world.stopping() ? nullptr : runtime->idle.pop_p_locked();
    if (p == nullptr) return false;
    runtime->search.wake_counted();
  }
  begin_with(m, p);
  note_back(m);
  return true;
}

bool wait_for_p(M* m) {
  if (m->is_over) return false;
  {
    std::lock_guard hold(runtime->idle.lock());
    if (runtime->world.ending()) return false;
    runtime->idle.push_locked(m);
  }
  return sleep_until_handed_a_p(m);
}

bool wait_in_place(M* m, Line line) {
  m->p = nullptr;
  if (take_idle_p(m)) {
    wake_successor(m, kAnyCpu);
    return true;
  }
  if (!get_in_place(m)) {
    wake_successor(m, kAnyCpu);
    return false;
  }
  G* g = m->current;
  bool was_bound = g->bound;
  g->bound = true;
  g->thread = m;
  GState before = g->state.load(base::relaxed);  // running, or its body is over
  if (before == GState::running) g->state.store(GState::runnable, base::relaxed);
  if (line == Line::stopped) {
    runtime->preempted.fetch_add(1, base::relaxed);
    runtime->global.push_stopped(g);
  } else {
    runtime->global.push_urgent(g);
  }
  runtime->chaos.disturb();
  note_back(m);
  wake_successor(m, this_cpu());
  wake_searcher(nullptr);
  Goes goes = sleep_in_place(m);
  if (line == Line::stopped) runtime->preempted.fetch_sub(1, base::relaxed);
  if (goes != Goes::with_p) m->grip.set_taken();
  // [in-place] The runtime ends: g is still in the queue. An M that takes it out must find it bound, to a thread that waits
  // no more.
  if (goes == Goes::nowhere) return false;
  g->bound = was_bound;
  g->state.store(before, base::relaxed);
  if (goes == Goes::without_p) {
    runtime->without_p.announce(m);
  } else if (line == Line::stopped) {
    m->stopped_before_turn = m->p->turns();
  }
  return true;
}

void let_out(G* g) {
  M* its = g->thread;
  {
    std::lock_guard hold(runtime->idle.lock());
    if (!its->in_place.let_out_locked()) return;  // the runtime ends
  }
  runtime->away.fetch_add(1, base::seq_cst);
  its->wake_up.set();
}

M* hand_p_to_thread_of(P* p, G* g) {
  M* its = g->thread;
  std::lock_guard hold(runtime->idle.lock());
  return its->in_place.hand_locked(its->handed, p) ? its : nullptr;
}

bool pass_p_to_thread_of(M* m, G* g) {
  P* p = std::exchange(m->p, nullptr);
  p->end_hold(base::now_ns());
  M* its = hand_p_to_thread_of(p, g);
  if (its == nullptr) return false;
  its->wake_up.set();
  return wait_for_p(m);
}

void park_bound(M* m, G* g, Commit commit, void* argument) {
  g->thread = m;
  bool ends = !get_in_place(m);
  // The thread itself runs the commit step. Whoever wakes the goroutine meanwhile hands this thread another P. The step
  // releases what the goroutine holds, a channel's lock or a set of timers, so it runs even if the runtime ends.
  bool waits = commit(m, g, argument);
  if (ends) abandon_goroutine(m);
  if (!waits) {
    g->move(GState::waiting, GState::runnable);
    put_last(m, g);
  }
  see_to_owed_timer(m);
  runtime->chaos.disturb();
  let_go(std::exchange(m->p, nullptr));
  if (sleep_in_place(m) != Goes::with_p) abandon_goroutine(m);
  g->state.store(GState::running, base::relaxed);
}

void yield_bound(M* m, G* g) {
  g->move(GState::running, GState::waiting);
  park_bound(
      m, g, [](M*, G*, void*) { return false; }, nullptr);
}

}  // namespace magpie::sched
