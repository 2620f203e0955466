// join.cc: waits for a goroutine, or runs it instead of waiting.
//
// A joiner has to wait anyway, so it claims a goroutine that has not started and runs it on its own
// stack. Fork-join code then runs depth first, with hardly a switch. First-in-first-out order would
// expand it breadth first into millions of parked parents.
//
// The joiner does that only while three quarters of a usual stack are left, whatever stack it has:
// that much every goroutine may count on. A chain of joins then goes on on a new stack, after
// hundreds of usual frames. And it does so only for goroutines that asked for no stack size of
// their own. Protocols [join] and [claim]: sched/join.h.
#include <sched.h>

#include <magpie/detail/task.h>
#include <magpie/runtime.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "sched/cancel_source.h"
#include "sched/core/loop.h"
#include "sched/core/queues.h"
#include "sched/current.h"
#include "sched/entry.h"
#include "sched/presence.h"
#include "sched/run/runtime.h"
#include "sched/spawn.h"
#include "sched/waiter.h"

namespace magpie::detail {

using namespace sched;

namespace {

bool has_room_for_another(M* m) {
  const stack::Stack* stack = m->current->stack;
  std::size_t usual = stack->pooled ? stack->usable() : runtime->stacks.stack_size();
  return stack_left(m) >= usual - usual / 4;
}

// Others may run g at this moment: only what is fixed while it is started may be looked at.
bool may_run_in_place(M* m, G* g) {
  return !g->asked_for_stack && !m->current->bound && has_room_for_another(m);
}

// True: it was run here.
inline bool claim_and_run(M* m, G* g) {
  if (!may_run_in_place(m, g)) return false;
  // One that was readied may be in the next slot too, with a stack of its own. Relaxed: only we
  // fill our slot, so what is in it while it is fresh stays so.
  bool fresh = g->state.load(base::relaxed) == GState::fresh;
  if (fresh && m->p->queue.next.take_if(g)) {
    g->claim.take_removed();
  } else if (!g->claim.claim()) {
    return false;
  }
  run_in_place(m, g);
  return true;
}

[[gnu::noinline]] void park_until_done(G* g) {
  Waiter waiter;
  waiter.wait(
      WaitReason::join,
      [](Waiter& self, void* target) { return static_cast<G*>(target)->join.commit(&self); }, g);
}

inline void wait_as_goroutine(M* m, G* g) {
  if (g->join.is_done()) return;
  // Else one that only joins in place would never let the world stop, or others run.
  if (runtime->world.stopping() || m->p->slice_over) [[unlikely]] {
    m->p->slice_over = false;
    yield();
    m = current_m();
  }
  if (!claim_and_run(m, g)) park_until_done(g);
}

[[gnu::noinline]] TaskRef start_as_thread(Task* task, TaskBody body) {
  TaskRef ref{task, runtime->generation};
  start_goroutine_outside(*runtime, g_of(task), body);
  leave_runtime();
  return ref;
}

[[gnu::noinline]] TaskRef finish_joinable_start(M* m, Task* task, G* homeless) {
  finish_start(*runtime, m, g_of(task), homeless);
  return TaskRef{task, runtime->generation};
}

[[gnu::noinline]] TaskRef start_joinable_slow(Task* task, TaskBody body) {
  Entry entry;
  M* m = entry.m();
  if (m == nullptr) return start_as_thread(task, body);
  G* homeless;
  if (!start_goroutine(*runtime, m, g_of(task), body, homeless))
    return finish_joinable_start(m, task, homeless);
  return TaskRef{task, runtime->generation};
}

// A plain thread's leave to use the goroutine's record. False: its run() has ended.
bool enter_run_of(TaskRef ref) {
  if (!enter_runtime()) return false;
  if (runtime->generation == ref.generation) return true;
  leave_runtime();
  return false;
}

// While it sleeps the runtime may end; then it is woken, see drop_goroutines.
[[gnu::noinline]] Joined wait_as_thread(TaskRef ref) {
  if (!enter_run_of(ref)) return Joined::dropped;
  Waiter waiter;
  if (g_of(ref.task)->join.commit(&waiter)) {
    leave_runtime();
    waiter.block_thread();
    if (!enter_run_of(ref)) return Joined::dropped;
  }
  return Joined::by_outsider;
}

}  // namespace

TaskRef start_joinable_task(Task* task, TaskBody body) noexcept {
  G* g = g_of(task);
  g->joinable = true;
  g->join.reset();
  g->claim.reset();
  M* m = current_m();
  if (!come_in_at_once(m)) [[unlikely]]
    return start_joinable_slow(task, body);
  G* homeless;
  if (!start_goroutine(*runtime, m, g, body, homeless)) [[unlikely]] {
    TaskRef ref = finish_joinable_start(m, task, homeless);
    go_out();
    return ref;
  }
  m->grip.leave();
  return TaskRef{task, runtime->generation};
}

namespace {

inline Joined wait_inside(M* m, TaskRef ref) {
  if (ref.generation != runtime->generation) [[unlikely]]
    return Joined::dropped;
  wait_as_goroutine(m, g_of(ref.task));
  return Joined::by_us;
}

[[gnu::noinline]] Joined wait_slow(TaskRef ref) {
  Entry entry;
  return entry.m() == nullptr ? wait_as_thread(ref) : wait_inside(entry.m(), ref);
}

}  // namespace

Joined wait_for_task(TaskRef ref) {
  M* m = current_m();
  if (!come_in_at_once(m)) [[unlikely]]
    return wait_slow(ref);
  Joined joined = wait_inside(m, ref);
  go_out();
  return joined;
}

namespace {

// The wait of a joiner that may reach its limit first. On its stack.
struct LimitedJoin {
  TaskRef ref;
  WithdrawnMark withdrawn{};
};

// A plain thread is inside the run() until it has told the goroutine.
bool tell_goroutine(Waiter& self, void* joined) {
  TaskRef ref = static_cast<LimitedJoin*>(joined)->ref;
  bool is_thread = self.is_thread();  // the record may be gone when it is told
  if (!g_of(ref.task)->join.commit(&self)) self.wake();
  if (is_thread) leave_runtime();
  return true;
}

// The context is over, or time is up: two may come here for one wait. False: too late, the
// goroutine has ended, or its run(), or the other was first: the joiner is woken.
bool untell_goroutine(Waiter& self, void* joined) {
  auto& wait = *static_cast<LimitedJoin*>(joined);
  TaskRef ref = wait.ref;
  Presence presence;
  if (presence.generation() != ref.generation) return false;
  JoinWord& join = g_of(ref.task)->join;
  for (int turn = 1;; ++turn) {
    switch (join.withdraw(&self, wait.withdrawn)) {
      case JoinWord::Withdrawn::yes:
        return true;
      case JoinWord::Withdrawn::no_woken:
        return false;
      case JoinWord::Withdrawn::not_yet:  // a few instructions behind
        base::cpu_relax();
        if (turn % 100 == 0) sched_yield();
    }
  }
}

// For a limit that leaves no time. A plain thread is inside the run(), and stays there if the
// goroutine has ended.
Joined joined_already(TaskRef ref, bool is_thread) {
  if (g_of(ref.task)->join.is_done()) return is_thread ? Joined::by_outsider : Joined::by_us;
  if (is_thread) leave_runtime();
  return Joined::not_yet;
}

}  // namespace

Joined wait_for_task(TaskRef ref, const WaitLimit& limit) {
  if (limit.source == nullptr && limit.deadline == kNoDeadline) return wait_for_task(ref);
  Entry entry;
  bool is_thread = entry.m() == nullptr;
  if (is_thread ? !enter_run_of(ref) : ref.generation != runtime->generation)
    return Joined::dropped;
  if (limit.deadline <= base::now_ns()) return joined_already(ref, is_thread);
  Waiter waiter;
  LimitedJoin wait{ref};
  bool woken = limit.source == nullptr
                   ? waiter.wait_until(limit.deadline, WaitReason::join, tell_goroutine,
                                       untell_goroutine, &wait)
                   : limit.source->wait(waiter, limit.deadline, WaitReason::join, tell_goroutine,
                                        untell_goroutine, &wait);
  if (!woken) return Joined::not_yet;
  if (!is_thread) return Joined::by_us;
  return enter_run_of(ref) ? Joined::by_outsider : Joined::dropped;
}

void drop_what_is_left(Task* task) noexcept {
  G* g = g_of(task);
  g->body(g->room, TaskOrder::drop);
}

namespace {

inline void retire(M* m, G* g) {
  g->state.store(GState::free, base::relaxed);
  if (g->claim.retire()) free_record(m, g);
}

}  // namespace

void free_joined_task(Task* task, Joined joined) noexcept {
  G* g = g_of(task);
  if (g->extra != nullptr) [[unlikely]]
    drop_extra(g);
  M* m = current_m();
  bool quick = come_in_at_once(m);
  if (quick) [[likely]] {
    retire(m, g);
    m->grip.leave();
  } else {
    Entry entry;
    retire(entry.m(), g);
  }
  if (joined == Joined::by_outsider) [[unlikely]]
    leave_runtime();
}

void detach_task(TaskRef ref) noexcept {
  Joined joined = Joined::by_us;
  if (current_m() == nullptr) {
    if (!enter_run_of(ref)) return;
    joined = Joined::by_outsider;
  } else if (ref.generation != runtime->generation) {
    return;
  }
  if (g_of(ref.task)->join.detach()) {
    if (joined == Joined::by_outsider) leave_runtime();
  } else {
    drop_what_is_left(ref.task);
    free_joined_task(ref.task, joined);
  }
}

}  // namespace magpie::detail
