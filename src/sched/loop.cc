#include "sched/loop.h"

#include <utility>

#include "base/check.h"
#include "context/float_control.h"
#include "context/switch.h"
#include "sched/current.h"
#include "sched/find_work.h"
#include "sched/queues.h"
#include "sched/runtime.h"
#include "sched/uncaught.h"
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
    stack->next = nullptr;
    runtime->stacks.give(stack);
  }
}

// First thing after a switch: what the side that left could not do itself.
void settle(M* m) {
  if (G* g = m->left.g) {
    m->left.g = nullptr;
    if (!m->left.commit(m, g, m->left.argument)) {
      g->move(GState::waiting, GState::runnable);
      put_next(*runtime, m, g);
    }
  } else if (stack::Stack* stack = m->left.stack) {
    m->left.stack = nullptr;
    put_away(m, stack);
  }
}

base::Fiber& fiber_of(M* m) { return m->stack == nullptr ? m->native_fiber : m->stack->fiber; }

// Inlined into functions marked MAGPIE_SWITCHES only. Saves the running side in *save and goes on at `resume` on `to` (null: the thread's own stack). Returns on the
// M that switches back, with its `stack` still that of whoever did.
[[gnu::always_inline]] inline M* switch_to(M* m, void** save, void* resume, stack::Stack* to,
                                           base::Leave leave) {
  base::Fiber& from = fiber_of(m);
  m->left_fiber = &from;
  m->stack = to;
  base::before_switch(from, fiber_of(m), leave);
  return static_cast<M*>(context::swap(save, resume, m));
}

// First thing on a stack that is entered from its top.
void enter_loop(void* value) {
  M* m = static_cast<M*>(value);
  base::after_switch(fiber_of(m), *m->left_fiber);
  *m->exceptions = {};
  settle(m);
  loop(m);
}

void* fresh_loop(stack::Stack* stack) {
  base::restart_fiber(stack->fiber);
  return context::prepare(stack->top(), enter_loop);
}

void start_running(M* m, G* g) {
  m->current = g;
  g->state.store(GState::running, base::relaxed);
}

// Leaves a loop for good: for a goroutine that has a stack, for a fresh loop on another stack, or for the
// thread's own stack (to == null).
[[noreturn, MAGPIE_SWITCHES]] void abandon_loop(M* m, void* resume, stack::Stack* to) {
  m->left.stack = m->stack;
  void* never_resumed;
  switch_to(m, &never_resumed, resume, to, base::Leave::for_ever);
  __builtin_unreachable();
}

// Destroys goroutine-local values, as the goroutine: a destructor may block, or use other such values.
void destroy_locals(GExtra& extra) {
  while (!extra.locals.empty()) {
    GExtra::LocalValue local = extra.locals.back();
    extra.locals.pop_back();
    local.destroy(local.value);
  }
}

void call_body(G* g) {
  try {
    g->body(g->room, detail::TaskOrder::run);
  } catch (...) {
    handle_uncaught(g);
  }
  if (g->extra != nullptr) destroy_locals(*g->extra);
}

// Tells the joiner; frees the record unless a joiner still needs it.
void finish(M* m, G* g) {
  g->stack = nullptr;
  m->current = nullptr;
  m->p->counters.ended.increment();
  if (!g->joinable) {
    free_record(m, g);
    return;
  }
  g->state.store(GState::ended, base::relaxed);
  void* waiter = nullptr;
  switch (g->join.finish(waiter)) {
    case JoinWord::Owes::nothing:
      return;
    case JoinWord::Owes::wake_waiter:
      static_cast<Waiter*>(waiter)->wake();
      return;
    case JoinWord::Owes::free_record:
      g->body(g->room, detail::TaskOrder::drop);
      free_record(m, g);
      return;
  }
}

// Calls a fresh goroutine on the loop's stack. Returns the M on which it ended.
M* call_fresh(M* m, G* g) {
  g->stack = m->stack;
  start_running(m, g);
  call_body(g);
  m = current_m();  // it may have blocked and come back elsewhere
  context::reset_float_control();
  finish(m, g);
  return m;
}

// A fresh goroutine that asked for a stack size gets a loop of its own there.
void start_on_own_stack(M* m, G* g) {
  stack::Stack* own = stack::map_single(g->extra->stack_size);
  if (own == nullptr) {
    put_off(*runtime, m, g);
    return;
  }
  m->start_with = g;
  abandon_loop(m, fresh_loop(own), own);
}

bool has_spare(M* m) {
  if (m->spare == nullptr) m->spare = m->p->stacks.take(runtime->stacks);
  return m->spare != nullptr;
}

void loop(M* m) {
  for (;;) {
    G* g = m->start_with != nullptr ? std::exchange(m->start_with, nullptr) : find_work(m);
    if (g == nullptr) abandon_loop(m, m->native_sp, nullptr);
    if (g->stack != nullptr) {
      start_running(m, g);
      abandon_loop(m, g->saved_sp, g->stack);
    }
    if (!has_spare(m)) {
      put_off(*runtime, m, g);
      continue;
    }
    bool wants_own_stack = g->extra != nullptr && g->extra->stack_size != 0;
    if (wants_own_stack && m->stack->pooled) {
      start_on_own_stack(m, g);
      continue;
    }
    m = call_fresh(m, g);
    if (!m->stack->pooled) {
      stack::Stack* spare = std::exchange(m->spare, nullptr);
      abandon_loop(m, fresh_loop(spare), spare);
    }
  }
}

}  // namespace

[[MAGPIE_SWITCHES]] M* leave_goroutine(M* m, G* g, G* next, Commit commit, void* argument) {
  m->left.g = g;
  m->left.commit = commit;
  m->left.argument = argument;
  stack::Stack* mine = m->stack;
  context::ExceptionState exceptions = *m->exceptions;

  void* resume;
  stack::Stack* to;
  if (next != nullptr && next->stack != nullptr) {
    start_running(m, next);
    resume = next->saved_sp;
    to = next->stack;
  } else {
    m->current = nullptr;
    m->start_with = next;
    to = std::exchange(m->spare, nullptr);
    resume = fresh_loop(to);
  }
  m = switch_to(m, &g->saved_sp, resume, to, base::Leave::to_come_back);

  base::after_switch(mine->fiber, *m->left_fiber);
  *m->exceptions = exceptions;
  settle(m);
  return m;
}

[[MAGPIE_SWITCHES]] void run_loop(M* m) {
  base::adopt_thread_stack(m->native_fiber);
  stack::Stack* stack = std::exchange(m->spare, nullptr);
  m = switch_to(m, &m->native_sp, fresh_loop(stack), stack, base::Leave::to_come_back);
  base::after_switch(m->native_fiber, *m->left_fiber);
  settle(m);
}

void run_in_place(G* child) {
  M* m = current_m();
  G* parent = m->current;
  context::ExceptionState exceptions = std::exchange(*m->exceptions, {});
  context::FloatControl float_control;
  context::reset_float_control();
  parent->wait_reason.store(WaitReason::join, base::relaxed);
  parent->move(GState::running, GState::waiting);
  child->stack = m->stack;
  start_running(m, child);

  call_body(child);

  m = current_m();  // the child may have blocked and come back elsewhere
  child->stack = nullptr;
  child->state.store(GState::ended, base::relaxed);
  m->p->counters.ended.increment();
  m->p->counters.claims.increment();
  start_running(m, parent);
  float_control.restore();
  *m->exceptions = exceptions;
}

std::size_t stack_left(const M* m) {
  auto* here = static_cast<const std::byte*>(__builtin_frame_address(0));
  return static_cast<std::size_t>(here - m->stack->low);
}

}  // namespace magpie::sched
