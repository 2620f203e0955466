#include "sched/taking/bound.h"

#include <magpie/blocking.h>

#include <utility>

#include "base/clock.h"
#include "base/guard.h"
#include "base/probe.h"
#include "sched/core/queues.h"
#include "sched/core/switching.h"
#include "sched/current.h"
#include "sched/entry.h"
#include "sched/rest/bystanders.h"
#include "sched/rest/fire.h"
#include "sched/rest/rest.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"
#include "sched/taking/free_cpu.h"
#include "sched/taking/hand_off.h"

namespace magpie::sched {
namespace {

Goes sleep_in_place(M* m) {
  m->wake_up.wait();
  P* p;
  if (Goes goes = m->rest.in_place.take_what_came(m->rest.handed, p); goes != Goes::with_p)
    return goes;
  begin_with(m, p);
  use_free_cpu(m);
  return Goes::with_p;
}

// False: the runtime ends.
bool get_in_place(M* m) {
  base::Guard hold(runtime->idle.lock());
  if (runtime->world.ending()) return false;
  m->rest.in_place.begin_locked();
  return true;
}

}  // namespace

void end_thread_locks(M* m) {
  if (std::exchange(m->thread_locks, 0) != 0) runtime->bound.fetch_sub(1, base::relaxed);
}

// Without a P the M's loop leaves for the thread, see loop().
void end_bound(M* m) {
  end_thread_locks(m);
  bool called_run = m->older == nullptr;
  if (called_run) return;
  m->is_over = true;
  P* p = std::exchange(m->p, nullptr);
  // Call this before the P looks for another thread: that thread may need this one's place under
  // the limit.
  runtime->threads.note_ended(m);
  let_go(p);
  let_another_look_for_deadlock();
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
  if (traced()) {
    Place place = line == Line::stopped ? Place::stopped : Place::urgent;
    trace_outside(Kind::stop, g->id, static_cast<std::uint64_t>(place));
  }
  if (line == Line::stopped) {
    runtime->preempted.fetch_add(1, base::relaxed);
    runtime->global.push_stopped(g);
  } else {
    runtime->bound.fetch_add(1, base::relaxed);
    runtime->global.push_urgent(g);
  }
  runtime->chaos.disturb();
  note_back(m);
  wake_successor(m, this_cpu());
  wake_searcher(nullptr);
  Goes goes = sleep_in_place(m);
  if (line == Line::stopped) runtime->preempted.fetch_sub(1, base::relaxed);
  if (goes != Goes::with_p) m->grip.set_taken();
  // [in-place] The runtime ends: g is still in the queue. An M that takes it out must find it
  // bound, to a thread that no longer waits.
  if (goes == Goes::nowhere) return false;
  if (line == Line::urgent) runtime->bound.fetch_sub(1, base::relaxed);
  g->bound = was_bound;
  g->state.store(before, base::relaxed);
  MAGPIE_PROBE(run, g->id, m->p);
  if (goes == Goes::without_p) {
    runtime->without_p.announce(m);
    return true;
  }
  if (traced()) trace_run(m, g);
  if (line == Line::stopped) m->stopped_before_turn = m->p->turns();
  return true;
}

void let_out(G* g) {
  M* its = g->thread;
  {
    base::Guard hold(runtime->idle.lock());
    if (!its->rest.in_place.let_out_locked()) return;  // the runtime ends
  }
  if (traced()) trace_outside(Kind::let_out, g->id);
  runtime->without_p.add();
  its->wake_up.set();
}

M* hand_p_to_thread_of(P* p, G* g) {
  M* its = g->thread;
  base::Guard hold(runtime->idle.lock());
  return its->rest.in_place.hand_locked(its->rest.handed, p) ? its : nullptr;
}

bool pass_p_to_thread_of(M* m, G* g) {
  P* p = std::exchange(m->p, nullptr);
  p->end_hold(base::now_ns());
  if (traced()) trace_handed_over(p);
  M* its = hand_p_to_thread_of(p, g);
  if (its == nullptr) return false;
  its->wake_up.set();
  return wait_for_p(m);
}

G* take_bound() {
  if (runtime->bound.load(base::relaxed) != 0) {
    while (G* g = runtime->global.take_bound()) {
      if (admit(nullptr, g)) return g;
      runtime->global.look_at_all_again();
    }
  }
  return runtime->global.pop_stopped();
}

void park_bound(M* m, G* g, Commit commit, void* argument) {
  if (traced()) trace_switch(m, g, nullptr);
  g->thread = m;
  bool ends = !get_in_place(m);
  // The thread itself runs the commit step. A waker that wakes the goroutine meanwhile causes
  // another P to be handed to this thread. The step releases what the goroutine holds, a channel's
  // lock or a set of timers. So it runs even if the runtime ends.
  bool waits = commit(m, g, argument);
  if (ends) abandon_goroutine(m);
  if (!waits) {
    g->move(GState::waiting, GState::runnable);
    MAGPIE_PROBE(ready, g->id);
    if (traced()) trace_ready(m, g, Place::ring, Source::goroutine);
    put_last(m, g);
  }
  see_to_owed_timer(m);
  runtime->chaos.disturb();
  let_go(std::exchange(m->p, nullptr));
  report_if_deadlock();
  if (next_look_for_deadlock_ns() != kNever) wake_searcher(nullptr);  // this thread cannot look
  if (sleep_in_place(m) != Goes::with_p) abandon_goroutine(m);
  start_running(m, g);
  if (traced()) trace_run(m, g);
}

void yield_bound(M* m, G* g) {
  g->move(GState::running, GState::waiting);
  park_bound(
      m, g, [](M*, G*, void*) { return false; }, nullptr);
}

}  // namespace magpie::sched

namespace magpie {

using namespace sched;

// Without an Entry, which may end on another thread: the caller wants to stay on this one.
ThreadLock::ThreadLock() noexcept {
  M* m = current_m();
  if (m == nullptr) return;
  if (m->thread_locks++ == 0) runtime->bound.fetch_add(1, base::relaxed);
  m->current->bound = true;
}

ThreadLock::~ThreadLock() {
  Entry entry;
  M* m = entry.m();
  if (m == nullptr || m->thread_locks == 0 || --m->thread_locks != 0) return;
  runtime->bound.fetch_sub(1, base::relaxed);
  m->current->bound = false;
}

}  // namespace magpie
