#include "sched/spawn.h"

#include <new>
#include <stdexcept>

#include <magpie/runtime.h>

#include "sched/core/queues.h"
#include "sched/current.h"
#include "sched/entry.h"
#include "sched/run/runtime.h"
#include "stack/stack.h"

namespace magpie::sched {
namespace {

constexpr std::uint64_t kIdsPerBlock = 64;

[[noreturn, gnu::cold]] void throw_no_runtime() {
  throw std::logic_error("magpie: no runtime runs; call go() and spawn() inside magpie::run()");
}

// Left when the task is started or unmade: until then run() must not unmap its record.
G* enter_and_make() {
  if (!enter_runtime()) throw_no_runtime();
  try {
    return new_goroutine_outside(*runtime);
  } catch (...) {
    leave_runtime();
    throw;
  }
}

// Gives a new record one of the numbers that the P has left.
inline G* numbered(M* m, G* g) {
  g->id = m->p->next_id++;
  g->creator = m->current != nullptr ? m->current->id : 0;  // null: a timer starts it
  return g;
}

// Null: there is no memory.
G* new_goroutine(Runtime& rt, M* m) {
  P* p = m->p;
  G* g = p->records.take(rt.records);
  if (g == nullptr) return nullptr;
  if (p->next_id == p->ids_end) {
    p->next_id = rt.next_ids.fetch_add(kIdsPerBlock, base::relaxed);
    p->ids_end = p->next_id + kIdsPerBlock;
  }
  return numbered(m, g);
}

}  // namespace

G* new_goroutine_outside(Runtime& rt) {
  G* g;
  if (rt.records.take({&g, 1}) == 0) throw std::bad_alloc();
  g->id = rt.next_ids.fetch_add(1, base::relaxed);
  g->creator = 0;
  return g;
}

void finish_start(Runtime& rt, M* m, G* g, G* homeless) {
  if (homeless == g) {
    put_next(rt, m, g);
  } else {
    if (homeless != nullptr) put_last(rt, m, homeless);
    wake_searcher(rt, m);
  }
  if (!m->p->slice_over) return;
  m->p->slice_over = false;
  if (m->current != nullptr) yield();  // null: a timer started it
}

void start_goroutine_outside(Runtime& rt, G* g, detail::TaskBody body) {
  g->body = body;
  g->state.store(GState::fresh, base::relaxed);
  rt.started_outside.fetch_add(1, base::relaxed);
  put_global(rt, g);
}

}  // namespace magpie::sched

namespace magpie::detail {

using namespace sched;

namespace {

// Throwing allocates, so a goroutine leaves first.
[[gnu::noinline]] Task* make_task_slowly() {
  G* g;
  {
    Entry entry;
    M* m = entry.m();
    g = m == nullptr ? enter_and_make() : new_goroutine(*runtime, m);
  }
  if (g == nullptr) throw std::bad_alloc();
  return task_of(g);
}

[[gnu::noinline]] void start_task_the_long_way(G* g, TaskBody body) {
  Entry entry;
  M* m = entry.m();
  if (m == nullptr) {
    start_goroutine_outside(*runtime, g, body);
    return leave_runtime();
  }
  G* homeless;
  if (!start_goroutine(*runtime, m, g, body, homeless)) finish_start(*runtime, m, g, homeless);
}

}  // namespace

Task* make_task() {
  M* m = current_m();
  if (!come_in_at_once(m)) [[unlikely]]
    return make_task_slowly();
  if (m->p->records.is_empty() || m->p->next_id == m->p->ids_end) [[unlikely]] {
    m->grip.leave();
    return make_task_slowly();
  }
  G* g = numbered(m, m->p->records.take_at_hand());
  m->grip.leave();
  return task_of(g);
}

Task* make_task(const GoOptions& options) {
  if (options.stack_size != 0) stack::check_size(options.stack_size);
  Task* task = make_task();
  try {
    GExtra& extra = g_of(task)->need_extra();
    extra.name = options.name;
    extra.stack_size = options.stack_size;
    g_of(task)->asked_for_stack = options.stack_size != 0;
  } catch (...) {
    unmake_task(task);
    throw;
  }
  return task;
}

void unmake_task(Task* task) noexcept {
  drop_extra(g_of(task));
  Entry entry;
  M* m = entry.m();
  free_record(m, g_of(task));
  if (m == nullptr) leave_runtime();
}

void start_task(Task* task, TaskBody body) noexcept {
  G* g = g_of(task);
  g->joinable = false;
  M* m = current_m();
  if (!come_in_at_once(m)) [[unlikely]]
    return start_task_the_long_way(g, body);
  G* homeless;
  if (start_goroutine(*runtime, m, g, body, homeless)) [[likely]]
    return m->grip.leave();
  finish_start(*runtime, m, g, homeless);
  go_out();
}

}  // namespace magpie::detail
