#include "sched/taking.h"

#include <mutex>

#include "sched/bound.h"
#include "sched/find_work.h"
#include "sched/runtime.h"
#include "sched/wake.h"

namespace magpie::sched {

// What an M outside holds does not change meanwhile.
bool take_from(M* m, const P* p) {
  if (!m->grip.ask()) return false;
  bool holds_it = m->grip.is_outside_for_taker() && p->holder.load(base::relaxed) == m;
  if (holds_it && m->grip.confirm()) return true;
  m->grip.withdraw();
  return false;
}

Heir choose_sleeping_thread(Runtime& rt) {
  std::lock_guard hold(rt.idle.lock());
  return Heir{.thread = rt.world.stopping() ? nullptr : rt.idle.pop_m_locked()};
}

Heir choose_stopped(Runtime& rt) { return Heir{.stopped = rt.global.pop_held()}; }

Heir choose_bound(Runtime& rt) { return Heir{.bound = take_bound(rt)}; }

void put_back(Runtime& rt, Heir heir) {
  if (heir.stopped != nullptr) rt.global.push_held_front(heir.stopped);
  // Not in the held line: the valve lets out those that are there, and this one may need a P to go on.
  if (heir.bound != nullptr) rt.global.push_urgent_front(heir.bound);
  if (heir.thread != nullptr) {
    std::lock_guard hold(rt.idle.lock());
    if (rt.world.ending()) {
      heir.thread->handed = nullptr;
      wake(rt, heir.thread);
    } else {
      rt.idle.push_locked(heir.thread);
    }
  }
  // The thread may have seen work and gone to sleep all the same, as it was about to be handed a P.
  look_again_for_others(rt);
}

M* hand_over(Runtime& rt, P* p, Heir heir) {
  if (heir.stopped != nullptr) return hand_p_to_thread_of(rt, p, heir.stopped);
  if (heir.bound != nullptr) return hand_p_to_thread_of(rt, p, heir.bound);
  heir.thread->handed = p;
  heir.thread->handed_searching = false;
  return heir.thread;
}

}  // namespace magpie::sched
