#include "sched/run/world.h"

#include "base/clock.h"
#include "base/guard.h"
#include "sched/core/queues.h"
#include "sched/rest/wake.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"
#include "sched/taking/hand_off.h"

namespace magpie::sched {

void World::stop(M* self) {
  if (traced()) trace_outside(Kind::stop_world);
  bool must_wait;
  {
    base::Guard hold(runtime->idle.lock());
    phase_.begin_stop_locked();
    std::uint32_t held = runtime->ps.count();
    while (P* p = runtime->idle.take_p_locked(nullptr)) {
      p->state.store(PState::stopped, base::relaxed);
      --held;
    }
    must_wait = phase_.must_wait_locked(held - (self != nullptr ? 1 : 0));
  }
  runtime->chaos.disturb();
  if (!must_wait) return;
  runtime->sysmon.hurry();  // it takes the Ps of Ms that do not come
  phase_.wait_until_stopped();
}

void World::take_back_locked(P* p) {
  // Before the stopper is told: the stopper writes the state too.
  if (phase_.stopping()) p->state.store(PState::stopped, base::relaxed);
  if (!phase_.give_to_stopper_locked()) runtime->idle.give_p_locked(p);
}

bool World::give_up_p(M* m) {
  P* p = m->p;
  if (m->searching) runtime->idle.end_search(m);
  {
    base::Guard hold(runtime->idle.lock());
    if (ending()) return false;
    if (!stopping()) return true;
    m->p = nullptr;
    p->end_hold(base::now_ns());
    take_back_locked(p);
    runtime->idle.list_locked(m);
  }
  return sleep_until_handed_a_p(m);
}

void World::start(M* self) {
  if (traced()) trace_outside(Kind::start_world);
  P* with_work = nullptr;
  {
    base::Guard hold(runtime->idle.lock());
    phase_.start_locked();
    std::span<P* const> ps = runtime->ps.in_use();
    for (auto p = ps.rbegin(); p != ps.rend(); ++p) {  // backwards, so that P0 is taken first
      if (self != nullptr && *p == self->p) continue;
      if ((*p)->is_empty()) {
        runtime->idle.give_p_locked(*p);
      } else {
        (*p)->state.store(PState::running, base::relaxed);
        (*p)->next_idle = with_work;
        with_work = *p;
      }
    }
  }
  while (with_work != nullptr) {
    P* p = with_work;
    with_work = p->next_idle;
    if (traced()) trace_handed_over(p);
    start_thread_for(p, Searching::no);
  }
  runtime->chaos.disturb();
  // The global queue may hold goroutines that were moved there. One searcher starts the chain.
  wake_searcher(self);
  runtime->sysmon.wake_if_asleep();  // [sysmon-sleep] the idle P that sysmon relied on may be gone
}

void World::shut_down() {
  base::Guard hold(runtime->idle.lock());
  phase_.end_locked();
  while (M* m = runtime->idle.take_m_locked(nullptr)) {
    m->rest.handed = nullptr;
    wake(m);
  }
  runtime->threads.for_each([](M* m) {
    runtime->idle.lock().assume_held();
    if (m->rest.in_place.send_home_locked(m->rest.handed)) m->wake_up.set();  // [in-place]
  });
  runtime->sysmon.hurry();  // it warns if an M does not come
}

}  // namespace magpie::sched
