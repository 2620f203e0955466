#include "sched/core/switching.h"

#include <utility>

#include "context/switch.h"
#include "sched/core/loop.h"
#include "sched/core/queues.h"
#include "sched/rest/fire.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"

namespace magpie::sched {
namespace {

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

[[gnu::noinline]] void ready_now(M* m, G* g) {
  g->move(GState::waiting, GState::runnable);
  if (traced()) trace_ready(m, g, Place::runnext, Source::goroutine);
  put_next(m, g);
}

// After a switch: does what the side that left could not do itself.
[[gnu::always_inline]] inline void settle(M* m) {
  if (G* yielded = m->left.yielded) {
    m->left.yielded = nullptr;
    put_last(m, yielded);
    wake_searcher(m);
  } else if (G* g = m->left.g) {
    m->left.g = nullptr;
    if (!m->left.commit(m, g, m->left.argument)) [[unlikely]]
      ready_now(m, g);
    if (m->current != nullptr) see_to_owed_timer(m);  // else the loop does it, or rests
  } else {
    settle_stack(m);
  }
}

[[maybe_unused]] base::Fiber& fiber_of(M* m) {
  stack::Stack* stack = m->current_stack();
  return stack == nullptr ? m->native_fiber : stack->fiber;
}

// Sanitizers need these three at each switch: before m->current or m->loop_stack changes, after it
// has changed, and on arrival. They are inlined like the functions they call, see base/sanitizer.h.
[[gnu::always_inline]] inline void note_departure(M* m) {
  if constexpr (base::kFibersAreTracked) m->left_fiber = &fiber_of(m);
}
[[gnu::always_inline]] inline void note_destination(M* m, base::Departure departure) {
  if constexpr (base::kFibersAreTracked)
    base::before_switch(*m->left_fiber, fiber_of(m), departure);
}
[[gnu::always_inline]] inline void note_arrival(M* m) {
  if constexpr (base::kFibersAreTracked) base::after_switch(fiber_of(m), *m->left_fiber);
}

// Runs first on a stack that is entered from its top.
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

// Leaves a loop for good. After note_departure(), the caller has set m->current or m->loop_stack to
// the destination.
[[noreturn, MAGPIE_SWITCHES]] void abandon_loop(M* m, stack::Stack* mine, void* resume) {
  m->left.stack = mine;
  note_destination(m, base::Departure::for_ever);
  void* never_resumed;
  context::swap(&never_resumed, resume, m);
  __builtin_unreachable();
}

// Where a goroutine that switches away goes: straight to `next`, or to a new loop that starts with
// it.
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

[[MAGPIE_SWITCHES]] M* swap_to(M* m, G* g, G* next) {
  if (traced()) [[unlikely]]
    trace_switch(m, g, next);
  note_departure(m);
  void* resume = choose_destination(m, next);
  note_destination(m, base::Departure::to_come_back);
  m = static_cast<M*>(context::swap(&g->saved_sp, resume, m));
  note_arrival(m);
  settle(m);
  return m;
}

// A thread's exception state is empty whenever the thread changes from one goroutine to another. A
// goroutine that blocks while it handles or throws an exception takes its state along. Most have
// none. A goroutine that blocks inside blocking() leaves the mark of the call behind: the mark
// belongs to the thread.
[[gnu::noinline]] M* swap_with_baggage(M* m, G* g, G* next) {
  if (m->is_in_blocking_call()) m->begin_or_end_blocking_call();
  context::ExceptionState mine = std::exchange(*m->exceptions, {});
  m = swap_to(m, g, next);
  *m->exceptions = mine;
  return m;
}

inline M* depart(M* m, G* g, G* next) {
  if (m->exceptions->any() || m->is_in_blocking_call()) [[unlikely]]
    return swap_with_baggage(m, g, next);
  return swap_to(m, g, next);
}

}  // namespace

[[noreturn]] void end_loop_for(M* m, G* g) {
  note_departure(m);
  stack::Stack* mine = std::exchange(m->loop_stack, nullptr);
  start_running(m, g);
  if (traced()) [[unlikely]]
    trace_run(m, g);
  abandon_loop(m, mine, g->saved_sp);
}

[[noreturn]] void move_loop_to(M* m, stack::Stack* other) {
  note_departure(m);
  stack::Stack* mine = std::exchange(m->loop_stack, other);
  abandon_loop(m, mine, fresh_loop(other));
}

[[noreturn]] void end_loop_for_thread(M* m) {
  note_departure(m);
  stack::Stack* mine = std::exchange(m->loop_stack, nullptr);
  abandon_loop(m, mine, m->native_sp);
}

M* switch_away(M* m, G* g, G* next, Commit commit, void* argument) {
  m->left.g = g;
  m->left.commit = commit;
  m->left.argument = argument;
  return depart(m, g, next);
}

void switch_away_yielding(M* m, G* g, G* next) {
  m->left.yielded = g;
  depart(m, g, next);
}

[[MAGPIE_SWITCHES]] void run_loop(M* m) {
  base::adopt_thread_stack(m->native_fiber);
  note_departure(m);
  m->loop_stack = std::exchange(m->spare, nullptr);
  void* resume = fresh_loop(m->loop_stack);
  context::ExceptionState mine = std::exchange(*m->exceptions, {});  // run() inside a catch block
  note_destination(m, base::Departure::to_come_back);
  m = static_cast<M*>(context::swap(&m->native_sp, resume, m));
  note_arrival(m);
  *m->exceptions = mine;
  settle(m);
}

[[MAGPIE_SWITCHES]] void abandon_goroutine(M* m) {
  note_departure(m);
  m->current->state.store(GState::waiting, base::relaxed);
  m->current = nullptr;
  m->loop_stack = nullptr;  // a goroutine that never parked runs on it
  *m->exceptions = {};
  note_destination(m, base::Departure::to_come_back);
  // Not in the record: another M may have taken the goroutine from a queue, and may look for its
  // thread in the record.
  void* never_resumed;
  context::swap(&never_resumed, m->native_sp, m);
  __builtin_unreachable();
}

}  // namespace magpie::sched
