#include "sched/rest/wake.h"

#include "base/guard.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"
#include "sched/taking/hand_off.h"

namespace magpie::sched {

namespace {

P* take_p_for_booked(const P* near) {
  base::Guard hold(runtime->idle.lock());
  if (!runtime->world.stopping()) return runtime->idle.take_p_for_booked_locked(near);
  runtime->idle.unbook_searcher_locked();
  return nullptr;
}

}  // namespace

void start_searcher(M* m) {
  runtime->chaos.disturb();
  P* p = take_p_for_booked(m != nullptr ? m->p : nullptr);
  if (p == nullptr) return;
  if (m == nullptr || m->p == nullptr) {
    if (traced()) trace_handed_over(p);
    return start_thread_for(p, Searching::yes);
  }
  // Starting a thread takes microseconds. The new searcher must not take the delay for a sign that
  // the goroutine in our runnext is stuck.
  m->p->counters.wakes.increment();
  if (traced()) trace_p(m->p, Kind::thread_wake, static_cast<std::uint64_t>(p->index));
  m->p->waking.store(true, base::relaxed);
  start_thread_for(p, Searching::yes);
  m->p->waking.store(false, base::relaxed);
}

void wake(M* m) {
  runtime->chaos.disturb();
  bool polls = m->rest.in_poller;
  m->wake_up.set();
  if (polls) runtime->network.interrupt();
}

}  // namespace magpie::sched
