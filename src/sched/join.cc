// join.cc: waits for a goroutine, or runs it instead of waiting.
//
// A joiner has to wait anyway, so it claims a goroutine that has not started and runs it on its own
// stack. Fork-join code then runs depth first, with hardly a switch. First-in-first-out order would
// expand it breadth first into millions of parked parents.
//
// The joiner does that only while three quarters of a usual stack are left, whatever stack it has:
// every goroutine may count on that much. Then a chain of joins continues on a new stack, after
// hundreds of usual frames. And it does so only for goroutines that asked for no stack size of
// their own. Protocols [join] and [claim]: core/join_word.h.
#include <sched.h>

#include <magpie/detail/task.h>
#include <magpie/runtime.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "context/float_control.h"
#include "sched/cancel_source.h"
#include "sched/core/ending.h"
#include "sched/core/queues.h"
#include "sched/core/slice.h"
#include "sched/core/switching.h"
#include "sched/current.h"
#include "sched/entry.h"
#include "sched/presence.h"
#include "sched/run/runtime.h"
#include "sched/spawn.h"
#include "sched/taking/bound.h"
#include "sched/waiter.h"

namespace magpie::detail {

using namespace sched;

namespace {

// A goroutine that only starts and joins others in place also gives way when its slice is over.
constexpr std::uint64_t kInPlacePerLook = 16;

void run_in_place(M* m, G* child);

// For the rare joiner that handles or throws an exception: its state is not the child's.
[[gnu::noinline]] void run_in_place_beside_exceptions(M* m, G* child) {
  context::ExceptionState mine = std::exchange(*m->exceptions, {});
  run_in_place(m, child);
  *current_m()->exceptions = mine;
}

// For the rare joiner that changed its floating-point control: the child has the default.
[[gnu::noinline]] void run_in_place_with_default_float_control(M* m, G* child,
                                                               context::FloatControl mine) {
  context::set_default_float_control();
  run_in_place(m, child);
  mine.restore();
}

// Runs a claimed goroutine's body as that goroutine, on the stack of the joiner, which runs on m.
void run_in_place(M* m, G* child) {
  if (m->exceptions->any()) [[unlikely]]
    return run_in_place_beside_exceptions(m, child);
  if (context::FloatControl now; !now.is_default()) [[unlikely]]
    return run_in_place_with_default_float_control(m, child, now);

  G* parent = m->current;
  parent->wait_reason.store(WaitReason::join_in_place, base::relaxed);
  parent->move(GState::running, GState::waiting);
  if (traced()) [[unlikely]]
    trace_join_begin(m, child);
  child->stack = parent->stack;
  start_running(m, child);

  m->grip.leave();
  child->body(child->payload, detail::TaskOrder::run);  // its exception is in its outcome
  if (child->extra != nullptr) [[unlikely]]
    destroy_locals(*child->extra);
  note_body_is_over(child);
  m = come_back();

  child->stack = nullptr;
  if (child->bound)
      // The child ended with a ThreadLock. The thread is its joiner's too, and stays.
      [[unlikely]] {
    child->bound = false;
    end_thread_locks(m);
  }
  child->state.store(GState::ended, base::relaxed);
  P* p = m->p;
  if (traced()) [[unlikely]]
    trace_join_end(m, child, parent);
  p->counters.goroutines_ended.increment();
  p->counters.joined_in_place.increment();
  if (p->counters.joined_in_place.read() % kInPlacePerLook == 0) look_at_slice(p);
  start_running(m, parent);
  context::reset_float_control();
}

// Bytes of the stack that are in use by the goroutine that runs there and calls this. Unsigned: on
// any other stack it is a number larger than a stack.
[[gnu::always_inline]] inline std::size_t stack_used(const stack::Stack* stack) {
  auto* here = static_cast<const std::byte*>(__builtin_frame_address(0));
  return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(stack) - here);
}

// Three quarters of the usual stack are left. A goroutine may also join on a stack that the program
// made and switched to, such as that of a ucontext or a fiber: how much is left there is not known.
bool has_room_for_another(M* m) {
  const stack::Stack* stack = m->current->stack;
  std::size_t usable = stack->usable();
  if (stack->pooled) [[likely]]
    return stack_used(stack) <= usable / 4;
  std::size_t usual = runtime->stacks.stack_size();
  std::size_t least = usual - usual / 4;
  return usable >= least && stack_used(stack) <= usable - least;
}

// Another M may run g at this moment. So this may only read what is fixed while g is started.
bool may_run_in_place(M* m, G* g) {
  return !g->asked_for_stack && !m->current->bound && has_room_for_another(m);
}

// True: it was run here.
inline bool claim_and_run(M* m, G* g) {
  if (!may_run_in_place(m, g)) return false;
  // A goroutine that was readied may be in runnext too, with a stack of its own. Relaxed:
  // only we fill our slot, so a goroutine that is fresh in it stays fresh.
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
  Waiter waiter(g);
  waiter.wait(
      WaitReason::join,
      [](Waiter& self, void* target) { return static_cast<G*>(target)->join.commit(&self); }, g);
}

inline Joined wait_as_goroutine(M* m, G* g) {
  if (g->join.is_done()) return Joined::by_us;
  // Otherwise a goroutine that only joins in place would never let the world stop, or others run.
  if (runtime->world.stopping() || m->p->slice_over) [[unlikely]] {
    m->p->slice_over = false;
    yield();
    m = current_m();
  }
  if (claim_and_run(m, g)) return Joined::by_us;
  if (g == m->current) [[unlikely]]
    return Joined::by_itself;
  park_until_done(g);
  return Joined::by_us;
}

[[gnu::noinline]] TaskRef start_joinable_slow(Task* task, TaskBody body, const void* caller) {
  Entry entry;
  M* m = entry.m();
  TaskRef ref{task, runtime->generation};
  if (m != nullptr) {
    start(m, g_of(task), body, caller);
  } else {
    start_outside(g_of(task), body, caller);
    end_visit();
  }
  return ref;
}

// A plain thread begins a visit to the run() of the goroutine, so that its record stays. False:
// that run() has ended.
bool enter_run_of(TaskRef ref) {
  if (!begin_visit()) return false;
  if (runtime->generation == ref.generation) return true;
  end_visit();
  return false;
}

// The runtime may end while the thread sleeps. Then drop_goroutines wakes the thread.
[[gnu::noinline]] Joined wait_as_thread(TaskRef ref) {
  if (!enter_run_of(ref)) return Joined::dropped;
  Waiter waiter(g_of(ref.task));
  if (g_of(ref.task)->join.commit(&waiter)) {
    end_visit();
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
  if (!try_enter_runtime(m)) [[unlikely]]
    return start_joinable_slow(task, body, __builtin_return_address(0));
  start_and_leave(m, g, body, __builtin_return_address(0));
  return TaskRef{task, runtime->generation};
}

namespace {

inline Joined wait_inside(M* m, TaskRef ref) {
  if (ref.generation != runtime->generation) [[unlikely]]
    return Joined::dropped;
  return wait_as_goroutine(m, g_of(ref.task));
}

[[gnu::noinline]] Joined wait_slow(TaskRef ref) {
  Entry entry;
  return entry.m() == nullptr ? wait_as_thread(ref) : wait_inside(entry.m(), ref);
}

}  // namespace

Joined wait_for_task(TaskRef ref) {
  M* m = current_m();
  if (!try_enter_runtime(m)) [[unlikely]]
    return wait_slow(ref);
  Joined joined = wait_inside(m, ref);
  leave_runtime();
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
  if (is_thread) end_visit();
  return true;
}

// The context is over, or time is up: both may come here for one wait. False: too late. The
// goroutine has ended, or its run(), or the other was first. Then the joiner is woken by that.
bool untell_goroutine(Waiter& self, void* joined) {
  auto& wait = *static_cast<LimitedJoin*>(joined);
  TaskRef ref = wait.ref;
  Presence presence;
  if (presence.generation() != ref.generation) return false;
  JoinWord& join = g_of(ref.task)->join;
  for (int spin = 1;; ++spin) {
    switch (join.withdraw(&self, wait.withdrawn)) {
      case JoinWord::Withdrawn::yes:
        return true;
      case JoinWord::Withdrawn::no_woken:
        return false;
      case JoinWord::Withdrawn::not_yet:  // a few instructions behind
        base::cpu_relax();
        if (spin % 100 == 0) sched_yield();
    }
  }
}

// For a limit that leaves no time. A plain thread is inside the run(), and stays there if the
// goroutine has ended.
Joined joined_already(TaskRef ref, bool is_thread) {
  if (g_of(ref.task)->join.is_done()) return is_thread ? Joined::by_outsider : Joined::by_us;
  if (is_thread) end_visit();
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
  Waiter waiter(g_of(ref.task));
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
  g->body(g->payload, TaskOrder::drop);
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
  bool quick = try_enter_runtime(m);
  if (quick) [[likely]] {
    retire(m, g);
    m->grip.leave();
  } else {
    Entry entry;
    retire(entry.m(), g);
  }
  if (joined == Joined::by_outsider) [[unlikely]]
    end_visit();
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
    if (joined == Joined::by_outsider) end_visit();
  } else {
    drop_what_is_left(ref.task);
    free_joined_task(ref.task, joined);
  }
}

}  // namespace magpie::detail
