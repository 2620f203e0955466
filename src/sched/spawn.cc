#include "sched/spawn.h"

#include <new>
#include <stdexcept>

#include <magpie/runtime.h>

#include "base/probe.h"
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

// The visit ends when the task is started or unmade: until then run() must not unmap its record.
G* enter_and_make() {
  if (!begin_visit()) throw_no_runtime();
  try {
    return new_goroutine_outside();
  } catch (...) {
    end_visit();
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
G* new_goroutine(M* m) {
  P* p = m->p;
  G* g = p->records.take(runtime->records, p->home.node_number);
  if (g == nullptr) return nullptr;
  if (p->next_id == p->ids_end) {
    p->next_id = runtime->next_ids.fetch_add(kIdsPerBlock, base::relaxed);
    p->ids_end = p->next_id + kIdsPerBlock;
  }
  return numbered(m, g);
}

}  // namespace

G* new_goroutine_outside() {
  G* g;
  if (runtime->records.take(runtime->homes.node_here(), {&g, 1}) == 0) throw std::bad_alloc();
  g->id = runtime->next_ids.fetch_add(1, base::relaxed);
  g->creator = 0;
  return g;
}

void start_slow(M* m, G* g, G* unplaced) {
  if (unplaced == g) {
    put_next(m, g);
  } else {
    if (unplaced != nullptr) put_last(m, unplaced);
    wake_searcher(m);
  }
  if (!m->p->slice_over || !runtime->options.preempt) return;  // else for the next join()
  m->p->slice_over = false;
  if (m->current != nullptr) yield();  // null: a timer started it
}

void start_traced(M* m, G* g, const void* caller) {
  trace_create(m, g, caller);
  m->p->counters.goroutines_started.increment();
  start_slow(m, g, g);
}

void start_outside(G* g, detail::TaskBody body, const void* caller) {
  g->body = body;
  g->state.store(GState::fresh, base::relaxed);
  MAGPIE_PROBE(spawn, g->id, g->creator, g->body);
  if (traced()) [[unlikely]]
    trace_create(nullptr, g, caller);
  runtime->started_outside.fetch_add(1, base::relaxed);
  put_global(g);
}

}  // namespace magpie::sched

namespace magpie::detail {

using namespace sched;

namespace {

// Throwing allocates, so a goroutine leaves the runtime first.
[[gnu::noinline]] Task* make_task_slow() {
  G* g;
  {
    Entry entry;
    M* m = entry.m();
    g = m == nullptr ? enter_and_make() : new_goroutine(m);
  }
  if (g == nullptr) throw std::bad_alloc();
  return task_of(g);
}

[[gnu::noinline]] void start_task_slow(G* g, TaskBody body, const void* caller) {
  Entry entry;
  M* m = entry.m();
  if (m == nullptr) {
    start_outside(g, body, caller);
    return end_visit();
  }
  start(m, g, body, caller);
}

}  // namespace

void throw_empty_function() {
  throw std::invalid_argument("magpie: an empty function, or a null pointer, to be called later");
}

Task* make_task() {
  M* m = current_m();
  if (!try_enter_runtime(m)) [[unlikely]]
    return make_task_slow();
  if (m->p->records.is_empty() || m->p->next_id == m->p->ids_end) [[unlikely]] {
    m->grip.leave();
    return make_task_slow();
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
  if (m == nullptr) end_visit();
}

void start_task(Task* task, TaskBody body) noexcept {
  G* g = g_of(task);
  g->joinable = false;
  M* m = current_m();
  if (!try_enter_runtime(m)) [[unlikely]]
    return start_task_slow(g, body, __builtin_return_address(0));
  start_and_leave(m, g, body, __builtin_return_address(0));
}

}  // namespace magpie::detail
