#include "sched/taking/stand_in.h"

#include <mutex>
#include <utility>

#include "sched/core/queues.h"
#include "sched/current.h"
#include "sched/rest/fire.h"
#include "sched/rest/wake.h"
#include "sched/run/runtime.h"

namespace magpie::sched {

void StandIn::fire_timers(Runtime& rt) {
  {
    std::lock_guard hold(rt.idle.lock());
    m_.p = rt.world.stopping() ? nullptr : rt.idle.pop_p_locked();
    if (m_.p == nullptr) return;
    rt.search.wake_counted();
  }
  set_current_m(&m_);
  while (G* g = fire_others(rt, &m_)) put_last(rt, &m_, g);
  set_current_m(nullptr);
  do_without_thread(rt, std::exchange(m_.p, nullptr), Searching::no);
}

}  // namespace magpie::sched
