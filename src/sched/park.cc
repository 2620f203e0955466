#include "sched/park.h"

#include <sched.h>

#include <magpie/runtime.h>

#include "sched/current.h"
#include "sched/find_work.h"
#include "sched/loop.h"
#include "sched/queues.h"
#include "sched/runtime.h"
#include "sched/wake.h"

namespace magpie::sched {

void park(WaitReason reason, Commit commit, void* argument) {
  M* m = current_m();
  G* g = m->current;
  g->wait_reason.store(reason, base::relaxed);
  g->move(GState::running, GState::waiting);
  leave_goroutine(m, g, next_at_hand(m), commit, argument);
}

void ready(G* g) {
  M* m = current_m();
  if (m != nullptr) {
    g->move(GState::waiting, GState::runnable);
    put_next(*runtime, m, g);
    return;
  }
  // A plain thread may come when run() is over; then the goroutine is gone.
  if (Outsider leave; leave) {
    g->move(GState::waiting, GState::runnable);
    put_global(*runtime, g);
  }
}

}  // namespace magpie::sched

namespace magpie {

void yield() {
  using namespace sched;
  M* m = current_m();
  if (m == nullptr) {
    sched_yield();
    return;
  }
  G* g = m->current;
  G* next = next_at_hand(m);
  if (next == nullptr && !loop_is_wanted(m)) {
    do {
      next = runtime->global.pop();
      if (next == nullptr) return;  // nobody else is ready here
    } while (!admit(m, next));
  }
  g->move(GState::running, GState::runnable);
  leave_yielding(m, g, next);
}

}  // namespace magpie
