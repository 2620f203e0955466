#include "sched/taking/taking.h"

#include "base/guard.h"
#include "sched/rest/rest.h"
#include "sched/rest/wake.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"
#include "sched/taking/bound.h"

namespace magpie::sched {

// The P that an M outside holds does not change meanwhile.
bool take_from(M* m, P* p, trace::Why why) {
  if (!m->grip.ask()) return false;
  bool holds_it = m->grip.is_outside_for_taker() && p->holder.load(base::relaxed) == m;
  // m's goroutine may go on, and even end, once the P is taken.
  std::uint64_t now = traced() ? trace::ticks_now() : 0;
  std::uint64_t goroutine = now != 0 && holds_it ? id_of_current(m) : 0;
  if (holds_it && m->grip.confirm()) {
    if (now != 0) trace_taken(p, goroutine, why, now);
    return true;
  }
  m->grip.withdraw();
  return false;
}

Heir choose_sleeping_thread(const P* p) {
  base::Guard hold(runtime->idle.lock());
  return Heir{.thread = runtime->world.stopping() ? nullptr : runtime->idle.take_m_locked(p)};
}

Heir choose_stopped() { return Heir{.stopped = runtime->global.pop_stopped()}; }

Heir choose_bound() { return Heir{.bound = take_bound()}; }

void put_back(Heir heir) {
  if (heir.stopped != nullptr) runtime->global.push_stopped_front(heir.stopped);
  // Not in the stopped line: the valve lets goroutines of that line out without a P, and this one
  // may need a P to continue.
  if (heir.bound != nullptr) runtime->global.push_urgent_front(heir.bound);
  if (heir.thread != nullptr) {
    base::Guard hold(runtime->idle.lock());
    if (runtime->world.ending()) {
      heir.thread->rest.handed = nullptr;
      wake(heir.thread);
    } else {
      runtime->idle.list_locked(heir.thread);
    }
  }
  // The thread may have seen work and gone to sleep all the same, because it was about to be handed
  // a P.
  look_again_for_others();
}

M* hand_over(P* p, Heir heir) {
  if (heir.stopped != nullptr) return hand_p_to_thread_of(p, heir.stopped);
  if (heir.bound != nullptr) return hand_p_to_thread_of(p, heir.bound);
  heir.thread->rest.handed = p;
  heir.thread->rest.handed_searching = false;
  return heir.thread;
}

}  // namespace magpie::sched
