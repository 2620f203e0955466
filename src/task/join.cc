// join.cc: waiting for a goroutine, or running it instead of waiting.
//
// A joiner has to wait anyway, so it claims a goroutine that has not started and runs it on its own stack.
// Fork-join code then runs depth first, with hardly a switch, where first-in-first-out order would expand
// it breadth first into millions of parked parents. Only while half of the joiner's stack is left, so that
// chains of joins do not overflow, and only for goroutines that asked for no stack of their own. Protocols
// [join] and [claim]: sched/join.h.
#include <magpie/detail/task.h>
#include <magpie/runtime.h>

#include "sched/current.h"
#include "sched/loop.h"
#include "sched/queues.h"
#include "sched/runtime.h"
#include "sched/spawn.h"
#include "sched/waiter.h"

namespace magpie::detail {

using namespace sched;

namespace {

bool may_run_in_place(M* m, G* g) {
  return (g->extra == nullptr || g->extra->stack_size == 0) &&
         stack_left(m) > m->current->stack->usable() / 2;
}

// True: it was run here.
bool claim_and_run(M* m, G* g) {
  if (!may_run_in_place(m, g)) return false;
  // One that was readied may be in the next slot too, with a stack of its own. Relaxed: only we fill our slot, so what
  // is in it while it is fresh stays so.
  bool fresh = g->state.load(base::relaxed) == GState::fresh;
  if (fresh && m->p->queue.next.take_if(g)) {
    g->claim.take_removed();
  } else if (!g->claim.claim()) {
    return false;
  }
  run_in_place(g);
  return true;
}

void wait_as_goroutine(M* m, G* g) {
  if (g->join.is_done()) return;
  // Else one that only joins in place would never let the world stop, or others run.
  if (runtime->world.stopping() || m->p->slice_over) [[unlikely]] {
    m->p->slice_over = false;
    yield();
    m = current_m();
  }
  if (claim_and_run(m, g)) return;
  Waiter waiter;
  waiter.wait(
      WaitReason::join,
      [](Waiter& self, void* target) { return static_cast<G*>(target)->join.commit(&self); }, g);
}

// While it sleeps the runtime may end; then it is woken, see drop_goroutines.
void wait_as_thread(TaskRef ref) {
  Waiter waiter;
  if (Visit visit(ref); !visit || !g_of(ref.task)->join.commit(&waiter)) return;
  waiter.block_thread();
}

}  // namespace

TaskRef start_joinable_task(Task* task, TaskBody body) noexcept {
  G* g = g_of(task);
  g->joinable = true;
  g->join.reset();
  g->claim.reset();
  if (M* m = current_m()) {
    start_goroutine(*runtime, m, g, body);
    return TaskRef{task, runtime->generation};
  }
  TaskRef ref{task, runtime->generation};
  start_goroutine(*runtime, nullptr, g, body);
  leave_runtime();
  return ref;
}

void wait_for_task(TaskRef ref) {
  M* m = current_m();
  if (m == nullptr) {
    wait_as_thread(ref);
  } else if (ref.generation == runtime->generation) {
    wait_as_goroutine(m, g_of(ref.task));
  }
}

void detach_task(TaskRef ref) noexcept {
  Visit visit(ref);
  if (visit && !g_of(ref.task)->join.detach()) free_joined_task(ref.task);
}

void free_joined_task(Task* task) noexcept {
  G* g = g_of(task);
  g->body(g->room, TaskOrder::drop);
  g->state.store(GState::free, base::relaxed);
  if (g->claim.retire()) free_record(current_m(), g);
}

Visit::Visit(TaskRef ref) noexcept {
  entered_ = current_m() == nullptr && enter_runtime();
  ok_ = (entered_ || current_m() != nullptr) && runtime->generation == ref.generation;
}

Visit::~Visit() {
  if (entered_) leave_runtime();
}

}  // namespace magpie::detail
