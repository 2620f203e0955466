#include "sched/entry.h"

#include "sched/core/loop.h"
#include "sched/core/queues.h"
#include "sched/run/runtime.h"
#include "sched/taking/bound.h"
#include "sched/taking/free_cpu.h"

namespace magpie::sched {
namespace {

// After its registers are saved: the goroutine waits for a P in the queue, and its thread is free.
bool queue_up(M* m, G* g, void*) {
  Runtime& rt = *runtime;
  if (g->state.load(base::relaxed) == GState::running)  // else its body is over
    g->state.store(GState::runnable, base::relaxed);
  rt.global.push_urgent(g);
  rt.chaos.disturb();
  is_back(rt, m);
  wake_searcher(rt, nullptr);
  rt.sysmon.look_soon();
  return true;
}

// The same of one that has a P, for no reason but chaos.
bool give_way(M* m, G* g, void*) {
  Runtime& rt = *runtime;
  if (g->state.load(base::relaxed) == GState::running)
    g->state.store(GState::runnable, base::relaxed);
  rt.global.push({&g, 1});
  wake_searcher(rt, m);
  return true;
}

}  // namespace

M* come_in_slowly(M* m) {
  Runtime& rt = *runtime;
  rt.chaos.disturb();
  if (m->grip.keep()) {
    bool stays = m->current->bound || !rt.options.preempt || !rt.chaos.one_in(2);
    return stays ? m : leave_goroutine(m, m->current, nullptr, give_way, nullptr);
  }
  wake_successor(rt, m, this_cpu());
  m->p = nullptr;
  if (m->current->bound) {
    if (!wait_in_place(rt, m, Line::urgent)) leave_for_good(m);
    return m;
  }
  if (take_idle_p(rt, m)) return m;
  return leave_goroutine(m, m->current, nullptr, queue_up, nullptr);
}

}  // namespace magpie::sched
