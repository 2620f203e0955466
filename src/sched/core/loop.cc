#include "sched/core/loop.h"

#include <utility>

#include "context/float_control.h"
#include "sched/core/ending.h"
#include "sched/core/find_work.h"
#include "sched/core/queues.h"
#include "sched/core/switching.h"
#include "sched/current.h"
#include "sched/entry.h"
#include "sched/rest/fire.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"
#include "sched/taking/bound.h"
#include "sched/taking/free_cpu.h"
#include "sched/taking/hand_off.h"
#include "sched/threads/stack_shortage.h"
#include "sched/waiter.h"

namespace magpie::sched {
namespace {

// After the body. This is user code, outside the runtime.
void end_body(G* g) {
  if (g->extra == nullptr) return;
  destroy_locals(*g->extra);
  if (!g->joinable) drop_extra(g);
}

// The goroutine is over. Its stack is the loop's again.
M* back_to_loop(M* m, G* g) {
  m->current = nullptr;
  m->loop_stack = std::exchange(g->stack, nullptr);
  return m;
}

// Once the joiner is told, the joiner owns the record. Returns the M that the goroutine ends on.
M* finish_joinable(M* m, G* g) {
  note_body_is_over(g);  // it may have been queued since
  back_to_loop(m, g);
  void* waiter = nullptr;
  JoinWord::Owes owes = g->join.finish(waiter);
  if (owes == JoinWord::Owes::wake_waiter) static_cast<Waiter*>(waiter)->wake();
  if (owes == JoinWord::Owes::free_record) {
    // The goroutine was detached. What it left is destroyed as the goroutine, because that may
    // block.
    g->stack = m->loop_stack;
    start_running(m, g);
    m->grip.leave();
    g->body(g->payload, detail::TaskOrder::drop);
    if (g->extra != nullptr) destroy_locals(*g->extra);  // made by what was destroyed just now
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
  m->p->counters.goroutines_ended.increment();
  if (traced()) [[unlikely]]
    trace_end(m);
  if (was_bound) [[unlikely]]
    end_bound(m);
  return m;
}

// Returns the M on which it ended. The goroutine may have blocked and come back on another M.
M* end_fresh(G* g) {
  end_body(g);
  note_body_is_over(g);
  M* m = come_back();
  context::reset_float_control();
  return finish(m, g);
}

// Calls a fresh goroutine on the loop's stack. Returns the M on which it ended. An exception of its
// body ends at the stack's first frame, see uncaught.h. Then the stack continues with
// go_on_after_uncaught().
M* call_fresh(M* m, G* g) {
  g->stack = m->loop_stack;
  start_running(m, g);
  if (traced()) [[unlikely]]
    trace_run(m, g);
  m->grip.leave();
  g->body(g->payload, detail::TaskOrder::run);
  return end_fresh(g);
}

// A fresh goroutine that asked for a stack size gets a loop of its own there.
void start_on_own_stack(M* m, G* g) {
  stack::Stack* own = stack::map_single(g->extra->stack_size);
  if (own == nullptr) {
    put_off(g);
    return;
  }
  m->start_with = g;
  move_loop_to(m, own);
}

bool has_spare(M* m) {
  if (m->spare == nullptr) m->spare = m->p->stacks.take(runtime->stacks, m->p->home.node_number);
  return m->spare != nullptr;
}

// Call this before the next goroutine: a stack of a goroutine's own size is not for others.
void give_back_own_stack(M* m) {
  if (!m->loop_stack->pooled && m->p != nullptr) move_loop_to(m, std::exchange(m->spare, nullptr));
}

// The limit of stopped goroutines is reached, and `fresh` has not begun: sysmon might have to stop
// it too. Returns a stopped goroutine to run instead, or null. A goroutine that a timer or a plain
// thread started begins all the same: it may be what ends the stopped ones.
[[gnu::noinline]] G* take_stopped_instead_of(M* m, G* fresh) {
  if (fresh->creator == 0) return nullptr;
  G* stopped = runtime->global.pop_stopped();
  if (stopped == nullptr) return nullptr;
  runtime->global.push_front(m->p->home.node_number, {&fresh, 1});
  wake_searcher(m);
  return stopped;
}

}  // namespace

void loop(M* m) {
  for (;;) {
    if (m->p == nullptr && !wait_for_p(m)) end_loop_for_thread(m);
    G* g = m->start_with != nullptr ? std::exchange(m->start_with, nullptr) : find_work(m);
    if (g == nullptr) end_loop_for_thread(m);
    see_to_owed_timer(m);
    if (g->bound) [[unlikely]] {
      if (!pass_p_to_thread_of(m, g)) end_loop_for_thread(m);
      continue;
    }
    if (g->stack != nullptr) end_loop_for(m, g);  // most wait again soon: not worth a move
    // On a stack of g's own size the loop runs g: no other goroutine may have that stack.
    bool is_for_any = m->loop_stack->pooled;
    if (is_for_any && runtime->has_enough_preempted()) [[unlikely]] {
      if (G* stopped = take_stopped_instead_of(m, g)) {
        m->start_with = stopped;
        continue;
      }
    }
    use_free_cpu(m);
    if (!has_spare(m)) {
      put_off(g);
      continue;
    }
    bool wants_own_stack = g->extra != nullptr && g->extra->stack_size != 0;
    if (wants_own_stack && is_for_any) {
      start_on_own_stack(m, g);
      continue;
    }
    m = call_fresh(m, g);
    give_back_own_stack(m);
  }
}

void go_on_after_uncaught() {
  M* m = end_fresh(current_m()->current);
  give_back_own_stack(m);
  loop(m);
}

}  // namespace magpie::sched
