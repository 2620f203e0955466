#include "sched/loop.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "context/float_control.h"
#include "context/switch.h"
#include "sched/bound.h"
#include "sched/current.h"
#include "sched/entry.h"
#include "sched/find_work.h"
#include "sched/fork.h"
#include "sched/free_cpu.h"
#include "sched/queues.h"
#include "sched/runtime.h"
#include "sched/slice.h"
#include "sched/stack_shortage.h"
#include "sched/timers.h"
#include "sched/waiter.h"

namespace magpie::sched {
namespace {

[[noreturn]] void loop(M* m);

void put_away(M* m, stack::Stack* stack) {
  if (!stack->pooled) {
    stack::unmap_single(stack);
  } else if (m->spare == nullptr) {
    m->spare = stack;
  } else if (m->p != nullptr) {
    m->p->stacks.give(runtime->stacks, stack);
  } else {
    runtime->stacks.give(stack);
  }
}

[[gnu::noinline]] void settle_stack(M* m) {
  if (stack::Stack* stack = std::exchange(m->left.stack, nullptr)) put_away(m, stack);
}

[[gnu::noinline]] void ready_at_once(M* m, G* g) {
  g->move(GState::waiting, GState::runnable);
  put_next(*runtime, m, g);
}

// After a switch: what the side that left could not do itself.
[[gnu::always_inline]] inline void settle(M* m) {
  if (G* yielded = m->left.yielded) {
    m->left.yielded = nullptr;
    put_last(*runtime, m, yielded);
    wake_searcher(*runtime, m);
  } else if (G* g = m->left.g) {
    m->left.g = nullptr;
    if (!m->left.commit(m, g, m->left.argument)) [[unlikely]]
      ready_at_once(m, g);
    if (m->current != nullptr) pay_watch(*runtime, m);  // else the loop does, or goes to sleep
  } else {
    settle_stack(m);
  }
}

[[maybe_unused]] base::Fiber& fiber_of(M* m) {
  stack::Stack* stack = m->current_stack();
  return stack == nullptr ? m->native_fiber : stack->fiber;
}

// Around each switch, for sanitizers: before and after m->current or m->loop_stack changes, and on arrival. Inlined as what
// they call, see base/sanitizer.h.
[[gnu::always_inline]] inline void note_departure(M* m) {
  if constexpr (base::kFibersAreTracked) m->left_fiber = &fiber_of(m);
}
[[gnu::always_inline]] inline void note_destination(M* m, base::Leave leave) {
  if constexpr (base::kFibersAreTracked) base::before_switch(*m->left_fiber, fiber_of(m), leave);
}
[[gnu::always_inline]] inline void note_arrival(M* m) {
  if constexpr (base::kFibersAreTracked) base::after_switch(fiber_of(m), *m->left_fiber);
}

// First thing on a stack that is entered from its top.
void enter_loop(void* value) {
  M* m = static_cast<M*>(value);
  note_arrival(m);
  settle(m);
  loop(m);
}

void* fresh_loop(stack::Stack* stack) {
  base::restart_fiber(stack->fiber);
  return context::prepare(stack->top(), enter_loop);
}

inline void start_running(M* m, G* g) {
  m->current = g;
  g->state.store(GState::running, base::relaxed);
}

// Leaves a loop for good. The caller has chosen m->current or m->loop_stack to go to, after note_departure().
[[noreturn, MAGPIE_SWITCHES]] void abandon_loop(M* m, stack::Stack* mine, void* resume) {
  m->left.stack = mine;
  note_destination(m, base::Leave::for_ever);
  void* never_resumed;
  context::swap(&never_resumed, resume, m);
  __builtin_unreachable();
}

[[noreturn]] void leave_loop_for(M* m, G* g) {
  note_departure(m);
  stack::Stack* mine = std::exchange(m->loop_stack, nullptr);
  start_running(m, g);
  abandon_loop(m, mine, g->saved_sp);
}

[[noreturn]] void move_loop_to(M* m, stack::Stack* other) {
  note_departure(m);
  stack::Stack* mine = std::exchange(m->loop_stack, other);
  abandon_loop(m, mine, fresh_loop(other));
}

[[noreturn]] void leave_loop_for_thread(M* m) {
  note_departure(m);
  stack::Stack* mine = std::exchange(m->loop_stack, nullptr);
  abandon_loop(m, mine, m->native_sp);
}

// Where a goroutine that leaves goes: straight to `next`, or to a new loop that starts with it.
inline void* choose_destination(M* m, G* next) {
  if (next != nullptr && next->stack != nullptr && !next->bound) [[likely]] {
    start_running(m, next);
    return next->saved_sp;
  }
  m->current = nullptr;
  m->start_with = next;
  m->loop_stack = std::exchange(m->spare, nullptr);
  return fresh_loop(m->loop_stack);
}

[[MAGPIE_SWITCHES]] M* switch_away(M* m, G* g, G* next) {
  note_departure(m);
  void* resume = choose_destination(m, next);
  note_destination(m, base::Leave::to_come_back);
  m = static_cast<M*>(context::swap(&g->saved_sp, resume, m));
  note_arrival(m);
  settle(m);
  return m;
}

// A thread's exception state is empty whenever it changes hands: a goroutine that blocks while it handles or
// throws an exception takes its state along. Most have none.
// One that blocks inside blocking() leaves its mark behind: it is the thread's.
[[gnu::noinline]] M* switch_away_with_baggage(M* m, G* g, G* next) {
  if (m->is_in_blocking_call()) m->begin_or_end_blocking_call();
  context::ExceptionState mine = std::exchange(*m->exceptions, {});
  m = switch_away(m, g, next);
  *m->exceptions = mine;
  return m;
}

inline M* leave(M* m, G* g, G* next) {
  if (m->exceptions->any() || m->is_in_blocking_call()) [[unlikely]]
    return switch_away_with_baggage(m, g, next);
  return switch_away(m, g, next);
}

// After the body; user code, outside the runtime.
void end_body(G* g) {
  if (g->extra == nullptr) return;
  destroy_locals(g);
  if (!g->joinable) drop_extra(g);
}

// Before it needs a P to go on: if the runtime ends and it never gets one, what it left must be destroyed.
void note_body_is_over(G* g) {
  if (g->joinable) g->state.store(GState::ended, base::relaxed);
}

// Back from user code, which may have blocked, and come back elsewhere.
M* come_back() {
  M* m = current_m();
  if (m == nullptr) [[unlikely]]
    returned_in_forked_child();
  return come_in(m);
}

// The goroutine is over; its stack is the loop's again.
M* back_to_loop(M* m, G* g) {
  m->current = nullptr;
  m->loop_stack = std::exchange(g->stack, nullptr);
  return m;
}

// Once the joiner is told, the record is the joiner's. Returns the M that the goroutine ends on.
M* finish_joinable(M* m, G* g) {
  note_body_is_over(g);  // it may have been queued since
  back_to_loop(m, g);
  void* waiter = nullptr;
  JoinWord::Owes owes = g->join.finish(waiter);
  if (owes == JoinWord::Owes::wake_waiter) static_cast<Waiter*>(waiter)->wake();
  if (owes == JoinWord::Owes::free_record) {
    // It was detached. What it left is destroyed as the goroutine: that may block.
    g->stack = m->loop_stack;
    start_running(m, g);
    m->grip.leave();
    g->body(g->room, detail::TaskOrder::drop);
    drop_extra(g);
    m = back_to_loop(come_back(), g);
    free_record(m, g);
  }
  return m;
}

M* finish(M* m, G* g) {
  bool was_bound = g->bound;
  if (was_bound) [[unlikely]]
    g->bound = false;
  if (g->joinable) {
    m = finish_joinable(m, g);
  } else {
    back_to_loop(m, g);
    free_record(m, g);
  }
  m->p->counters.ended.increment();
  if (was_bound) [[unlikely]]
    end_bound(m);
  return m;
}

// Returns the M on which it ended: it may have blocked and come back elsewhere.
M* end_fresh(G* g) {
  end_body(g);
  note_body_is_over(g);
  M* m = come_back();
  context::reset_float_control();
  return finish(m, g);
}

// Calls a fresh goroutine on the loop's stack. Returns the M on which it ended. What its body throws ends at the stack's first
// frame, see uncaught.h, and the stack goes on with go_on_after_uncaught().
M* call_fresh(M* m, G* g) {
  g->stack = m->loop_stack;
  start_running(m, g);
  m->grip.leave();
  g->body(g->room, detail::TaskOrder::run);
  return end_fresh(g);
}

// A fresh goroutine that asked for a stack size gets a loop of its own there.
void start_on_own_stack(M* m, G* g) {
  stack::Stack* own = stack::map_single(g->extra->stack_size);
  if (own == nullptr) {
    put_off(*runtime, g);
    return;
  }
  m->start_with = g;
  move_loop_to(m, own);
}

bool has_spare(M* m) {
  if (m->spare == nullptr) m->spare = m->p->stacks.take(runtime->stacks);
  return m->spare != nullptr;
}

// Before the next goroutine: the stack that one asked for is not for others.
void leave_own_stack(M* m) {
  if (!m->loop_stack->pooled && m->p != nullptr) move_loop_to(m, std::exchange(m->spare, nullptr));
}

// As many goroutines are stopped as may be, and this one has not begun: it may have to be stopped too. Returns a stopped one to
// run instead, or null. One that a timer or a plain thread started begins all the same: it may be what ends the others.
[[gnu::noinline]] G* take_stopped_instead_of(Runtime& rt, M* m, G* fresh) {
  if (fresh->creator == 0) return nullptr;
  G* stopped = rt.global.pop_held();
  if (stopped == nullptr) return nullptr;
  rt.global.push_front({&fresh, 1});
  wake_searcher(rt, m);
  return stopped;
}

void loop(M* m) {
  for (;;) {
    if (m->p == nullptr && !wait_for_p(*runtime, m)) leave_loop_for_thread(m);
    G* g = m->start_with != nullptr ? std::exchange(m->start_with, nullptr) : find_work(m);
    if (g == nullptr) leave_loop_for_thread(m);
    pay_watch(*runtime, m);
    if (g->bound) [[unlikely]] {
      if (!pass_p_to_thread_of(*runtime, m, g)) leave_loop_for_thread(m);
      continue;
    }
    if (g->stack != nullptr) leave_loop_for(m, g);  // most wait again soon: not worth a move
    if (runtime->has_enough_preempted()) [[unlikely]] {
      if (G* stopped = take_stopped_instead_of(*runtime, m, g)) {
        m->start_with = stopped;
        continue;
      }
    }
    use_free_cpu(*runtime, m);
    if (!has_spare(m)) {
      put_off(*runtime, g);
      continue;
    }
    bool wants_own_stack = g->extra != nullptr && g->extra->stack_size != 0;
    if (wants_own_stack && m->loop_stack->pooled) {
      start_on_own_stack(m, g);
      continue;
    }
    m = call_fresh(m, g);
    leave_own_stack(m);
  }
}

}  // namespace

void destroy_locals(G* g) {
  if (g->extra == nullptr) return;
  std::vector<GExtra::LocalValue>& locals = g->extra->locals;
  while (!locals.empty()) {
    GExtra::LocalValue local = locals.back();
    locals.pop_back();
    local.destroy(local.value);
  }
}

void go_on_after_uncaught() {
  M* m = end_fresh(current_m()->current);
  leave_own_stack(m);
  loop(m);
}

M* leave_goroutine(M* m, G* g, G* next, Commit commit, void* argument) {
  m->left.g = g;
  m->left.commit = commit;
  m->left.argument = argument;
  return leave(m, g, next);
}

void leave_yielding(M* m, G* g, G* next) {
  m->left.yielded = g;
  leave(m, g, next);
}

[[MAGPIE_SWITCHES]] void run_loop(M* m) {
  base::adopt_thread_stack(m->native_fiber);
  note_departure(m);
  m->loop_stack = std::exchange(m->spare, nullptr);
  void* resume = fresh_loop(m->loop_stack);
  context::ExceptionState mine = std::exchange(*m->exceptions, {});  // run() inside a catch block
  note_destination(m, base::Leave::to_come_back);
  m = static_cast<M*>(context::swap(&m->native_sp, resume, m));
  note_arrival(m);
  *m->exceptions = mine;
  settle(m);
}

[[MAGPIE_SWITCHES]] void leave_for_good(M* m) {
  note_departure(m);
  m->current->state.store(GState::waiting, base::relaxed);
  m->current = nullptr;
  m->loop_stack = nullptr;  // a goroutine that never parked runs on it
  *m->exceptions = {};
  note_destination(m, base::Leave::to_come_back);
  // Not in the record: another M may have taken the goroutine from a queue, and look for its thread there.
  void* never_resumed;
  context::swap(&never_resumed, m->native_sp, m);
  __builtin_unreachable();
}

// A goroutine that only starts and joins others in place gives way too when its slice is over.
constexpr std::uint64_t kClaimsPerLook = 16;

namespace {

// The rare joiner that handles or throws an exception: its state is not the child's.
[[gnu::noinline]] void run_in_place_beside_exceptions(M* m, G* child) {
  context::ExceptionState mine = std::exchange(*m->exceptions, {});
  run_in_place(m, child);
  *current_m()->exceptions = mine;
}

// The rare joiner that changed its floating-point control: the child has the default.
[[gnu::noinline]] void run_in_place_with_default_float_control(M* m, G* child,
                                                               context::FloatControl mine) {
  context::set_default_float_control();
  run_in_place(m, child);
  mine.restore();
}

}  // namespace

void run_in_place(M* m, G* child) {
  if (m->exceptions->any()) [[unlikely]]
    return run_in_place_beside_exceptions(m, child);
  if (context::FloatControl now; !now.is_default()) [[unlikely]]
    return run_in_place_with_default_float_control(m, child, now);

  G* parent = m->current;
  parent->wait_reason.store(WaitReason::join, base::relaxed);
  parent->move(GState::running, GState::waiting);
  child->stack = parent->stack;
  start_running(m, child);

  m->grip.leave();
  child->body(child->room, detail::TaskOrder::run);  // its exception is in its outcome
  if (child->extra != nullptr) [[unlikely]]
    destroy_locals(child);
  note_body_is_over(child);
  m = come_back();

  child->stack = nullptr;
  if (child->bound)
      [[unlikely]] {  // it ended with a ThreadLock: the thread is its joiner's too, and stays
    child->bound = false;
    m->thread_locks = 0;
  }
  child->state.store(GState::ended, base::relaxed);
  P* p = m->p;
  p->counters.ended.increment();
  p->counters.claims.increment();
  if (p->counters.claims.read() % kClaimsPerLook == 0) look_at_slice(*runtime, p);
  start_running(m, parent);
  context::reset_float_control();
}

}  // namespace magpie::sched
