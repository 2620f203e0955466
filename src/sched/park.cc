#include "sched/park.h"

#include <sched.h>

#include <magpie/runtime.h>

#include "base/check.h"
#include "sched/core/find_work.h"
#include "sched/core/loop.h"
#include "sched/core/queues.h"
#include "sched/current.h"
#include "sched/entry.h"
#include "sched/rest/wake.h"
#include "sched/run/runtime.h"
#include "sched/taking/bound.h"

namespace magpie::sched {

void park(WaitReason reason, Commit commit, void* argument) {
  M* m = current_m();
  G* g = m->current;
  MAGPIE_DCHECK(m->grip.is_inside());
  g->wait_reason.store(reason, base::relaxed);
  g->move(GState::running, GState::waiting);
  if (g->bound) [[unlikely]]
    return park_bound(m, g, commit, argument);
  switch_away(m, g, next_at_hand(m), commit, argument);
}

namespace {

// A plain thread may come when run() is over; then the goroutine is gone.
[[gnu::noinline]] void ready_from_outside(G* g) {
  if (Visit visit; visit) {
    g->move(GState::waiting, GState::runnable);
    runtime->global.push_urgent(g);
    runtime->chaos.disturb();
    wake_searcher(nullptr);
    if (runtime->search.view().idle == 0) runtime->sysmon.look_soon();
  }
}

[[gnu::noinline]] void ready_instead_of_next(M* m, G* g) { put_next(m, g); }

}  // namespace

// The usual path, an empty next slot, calls nothing and saves no registers.
void ready(G* g) {
  M* m = current_m();
  if (m == nullptr) [[unlikely]]
    return ready_from_outside(g);
  MAGPIE_DCHECK(m->grip.is_inside());
  g->move(GState::waiting, GState::runnable);
  if (!m->p->queue.next.put_if_empty(g)) return ready_instead_of_next(m, g);
  wake_searcher(m);
}

}  // namespace magpie::sched

namespace magpie {
namespace {

using namespace sched;

void yield_to(M* m, G* next) {
  G* g = m->current;
  g->move(GState::running, GState::runnable);
  switch_away_yielding(m, g, next);
}

// Nobody is at hand.
[[gnu::noinline]] void yield_to_global(M* m) {
  runtime->chaos.disturb();
  G* next = nullptr;
  if (!loop_is_wanted(m)) {
    do {
      next = runtime->global.pop();
      if (next == nullptr) return;  // nobody else is ready here
    } while (!admit(m, next));
  }
  yield_to(m, next);
}

void yield_inside(M* m) {
  G* g = m->current;
  if (g->bound) [[unlikely]]
    return yield_bound(m, g);
  G* next = next_at_hand(m);
  if (next == nullptr) [[unlikely]]
    return yield_to_global(m);
  yield_to(m, next);
}

[[gnu::noinline]] void yield_slow() {
  Entry entry;
  if (entry.m() == nullptr) {
    sched_yield();
  } else {
    yield_inside(entry.m());
  }
}

}  // namespace

void yield() {
  M* m = current_m();
  if (!try_enter_runtime(m)) [[unlikely]]
    return yield_slow();
  yield_inside(m);
  leave_runtime();
}

}  // namespace magpie
