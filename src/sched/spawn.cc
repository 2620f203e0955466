#include "sched/spawn.h"

#include <new>
#include <stdexcept>

#include <magpie/runtime.h>

#include "sched/current.h"
#include "sched/queues.h"
#include "sched/runtime.h"
#include "stack/stack.h"

namespace magpie::sched {
namespace {

constexpr std::uint64_t kIdsPerBlock = 64;

std::uint64_t take_id(Runtime& rt, P* p) {
  if (p->next_id == p->ids_end) {
    p->next_id = rt.next_ids.fetch_add(kIdsPerBlock, base::relaxed);
    p->ids_end = p->next_id + kIdsPerBlock;
  }
  return p->next_id++;
}

[[noreturn, gnu::cold]] void throw_no_runtime() {
  throw std::logic_error("magpie: no runtime runs; call go() and spawn() inside magpie::run()");
}

}  // namespace

G* new_goroutine(Runtime& rt, M* m) {
  G* g;
  if (m != nullptr) {
    g = m->p->records.take(rt.records);
    g->id = take_id(rt, m->p);
    g->creator = m->current != nullptr ? m->current->id : 0;  // null: a timer starts it
  } else {
    rt.records.take({&g, 1});
    g->id = rt.next_ids.fetch_add(1, base::relaxed);
    g->creator = 0;
  }
  return g;
}

void start_goroutine(Runtime& rt, M* m, G* g, detail::TaskBody body) {
  g->body = body;
  g->state.store(GState::fresh, base::relaxed);
  if (m != nullptr) {
    m->p->counters.started.increment();
    put_next(rt, m, g);
    if (m->p->slice_over) [[unlikely]] {
      m->p->slice_over = false;
      if (m->current != nullptr) yield();
    }
  } else {
    rt.started_outside.fetch_add(1, base::relaxed);
    put_global(rt, g);
  }
}

}  // namespace magpie::sched

namespace magpie::detail {

using namespace sched;

Task* make_task(const GoOptions* options) {
  if (options != nullptr && options->stack_size != 0) stack::check_size(options->stack_size);
  M* m = current_m();
  G* g;
  if (m != nullptr) {
    g = new_goroutine(*runtime, m);
  } else {
    // Left when the task is started or unmade: until then run() must not unmap its record.
    if (!enter_runtime()) throw_no_runtime();
    try {
      g = new_goroutine(*runtime, nullptr);
    } catch (...) {
      leave_runtime();
      throw;
    }
  }
  if (options != nullptr) {
    try {
      GExtra& extra = g->need_extra();
      extra.name = options->name;
      extra.stack_size = options->stack_size;
    } catch (...) {
      unmake_task(task_of(g));
      throw;
    }
  }
  return task_of(g);
}

void unmake_task(Task* task) noexcept {
  M* m = current_m();
  free_record(m, g_of(task));
  if (m == nullptr) leave_runtime();
}

void start_task(Task* task, TaskBody body) noexcept {
  G* g = g_of(task);
  g->joinable = false;
  if (M* m = current_m()) {
    start_goroutine(*runtime, m, g, body);
  } else {
    start_goroutine(*runtime, nullptr, g, body);
    leave_runtime();
  }
}

}  // namespace magpie::detail
