#include "sched/taking/stand_in.h"

#include <utility>

#include "base/guard.h"
#include "sched/core/queues.h"
#include "sched/current.h"
#include "sched/rest/fire.h"
#include "sched/run/runtime.h"
#include "sched/taking/hand_off.h"

namespace magpie::sched {

void StandIn::fire_timers() {
  {
    base::Guard hold(runtime->idle.lock());
    m_.p = runtime->world.stopping() ? nullptr : runtime->idle.take_p_locked(nullptr);
    if (m_.p == nullptr) return;
  }
  set_current_m(&m_);
  while (sees_due_timer(&m_))
    if (G* g = fire_others(&m_)) put_last(&m_, g);
  set_current_m(nullptr);
  do_without_thread(std::exchange(m_.p, nullptr), Searching::no);
}

}  // namespace magpie::sched
