// spawn.h: makes goroutines.
#pragma once

#include <cstddef>
#include <cstdint>

#include <magpie/detail/task.h>

#include "sched/core/m.h"
#include "sched/core/queues.h"
#include "sched/run/runtime.h"

namespace magpie::sched {

// A goroutine record, not started, made by a plain thread. Throws std::bad_alloc.
G* new_goroutine_outside();

// Makes it ready to run for the first time, by a plain thread.
void start_goroutine_outside(G* g, detail::TaskBody body);

// The same on m. The usual case calls nothing, so that it saves no registers; in others it is false and the caller
// calls finish_start(), best as its last step. `homeless` is who has no place in a queue yet, or null: g itself,
// or whoever was in the next slot before it.
[[nodiscard, gnu::always_inline]] inline bool start_goroutine(M* m, G* g, detail::TaskBody body,
                                                              G*& homeless) {
  P* p = m->p;
  g->body = body;
  g->state.store(GState::fresh, base::relaxed);
  p->counters.goroutines_started.increment();
  if (!p->queue.next.try_put(g, homeless)) [[unlikely]] {
    homeless = g;
    return false;
  }
  if (homeless != nullptr) {
    if (!p->queue.push(homeless)) [[unlikely]]
      return false;
    homeless = nullptr;
  }
  Search::View now;
  return !runtime->search.seems_to_need_searcher(now) && !p->slice_over;
}
void finish_start(M* m, G* g, G* homeless);

}  // namespace magpie::sched
