// yield.cc: a goroutine lets others run, and goes to the end of its P's ring.
#include <sched.h>

#include <magpie/runtime.h>

#include "sched/core/find_work.h"
#include "sched/core/queues.h"
#include "sched/core/switching.h"
#include "sched/current.h"
#include "sched/entry.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"
#include "sched/taking/bound.h"

namespace magpie {
namespace {

using namespace sched;

void yield_to(M* m, G* next) {
  G* g = m->current;
  g->move(GState::running, GState::runnable);
  switch_away_yielding(m, g, next);
}

// No goroutine is at hand.
[[gnu::noinline]] void yield_to_global(M* m) {
  runtime->chaos.disturb();
  G* next = nullptr;
  if (!loop_is_wanted(m)) {
    do {
      next = runtime->global.pop(m->p->home.node_number);
    } while (next != nullptr && !admit(m, next));
    bool is_stopped = next == nullptr;
    if (is_stopped) next = runtime->global.pop_stopped();
    if (next == nullptr) return;  // no other goroutine is ready here
    note_place(m->p, is_stopped ? Place::stopped : Place::global);
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
