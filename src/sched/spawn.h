// spawn.h: makes goroutines and starts them.
//
//   on an M           make_task takes a record from the P's cache; start puts it into runnext. The
//                     goroutine that was there goes to the end of the ring
//   on a plain thread the record comes from the pool, and goes to the global queue
#pragma once

#include <cstddef>
#include <cstdint>

#include <magpie/detail/task.h>

#include "base/probe.h"
#include "sched/core/m.h"
#include "sched/core/queues.h"
#include "sched/entry.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"

namespace magpie::sched {

// A goroutine record, not started, for a plain thread. Throws std::bad_alloc.
G* new_goroutine_outside();

// A plain thread makes g ready to run for the first time. caller: the code that called go(), for
// traces.
void start_outside(G* g, detail::TaskBody body, const void* caller);

// The rest of start(), rare. `unplaced` has no place in a queue yet; null: all goroutines have one.
[[gnu::noinline]] void start_slow(M* m, G* g, G* unplaced);

// What is left of start() while it is traced, with the event.
[[gnu::noinline]] void start_traced(M* m, G* g, const void* caller);

// Makes g ready to run for the first time, on m, inside. It may yield: afterwards the caller may be
// on another M. The usual case calls nothing, so it saves no registers. True: neither of the two
// above was needed.
[[gnu::always_inline]] inline bool start(M* m, G* g, detail::TaskBody body, const void* caller) {
  P* p = m->p;
  g->body = body;
  g->state.store(GState::fresh, base::relaxed);
  MAGPIE_PROBE(spawn, g->id, g->creator, g->body);
  if (traced()) [[unlikely]] {
    start_traced(m, g, caller);
    return false;
  }
  p->counters.goroutines_started.increment();
  G* unplaced;
  if (!p->queue.next.try_put(g, unplaced)) [[unlikely]] {
    start_slow(m, g, g);
    return false;
  }
  if (unplaced != nullptr) {  // displaced from runnext
    if (!p->queue.push(unplaced)) [[unlikely]] {
      start_slow(m, g, unplaced);
      return false;
    }
  }
  Search::View now;
  if (runtime->search.seems_to_need_searcher(now) || p->slice_over) [[unlikely]] {
    start_slow(m, g, nullptr);
    return false;
  }
  return true;
}

// The same for a goroutine that entered by try_enter_runtime(), as its last step inside.
[[gnu::always_inline]] inline void start_and_leave(M* m, G* g, detail::TaskBody body,
                                                   const void* caller) {
  if (start(m, g, body, caller)) [[likely]]
    m->grip.leave();
  else
    leave_runtime();
}

}  // namespace magpie::sched
