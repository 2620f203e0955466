#include "sched/park.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/probe.h"
#include "sched/core/find_work.h"
#include "sched/core/queues.h"
#include "sched/core/switching.h"
#include "sched/current.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"
#include "sched/run/wait_profile.h"
#include "sched/taking/bound.h"

namespace magpie::sched {

namespace {

[[gnu::always_inline]] inline void park_now(WaitReason reason, Commit commit, void* argument) {
  M* m = current_m();
  G* g = m->current;
  MAGPIE_DCHECK(m->grip.is_inside());
  g->wait_reason.store(reason, base::relaxed);
  g->wait_record = static_cast<std::uint16_t>(reinterpret_cast<std::uintptr_t>(argument));
  MAGPIE_PROBE(park, g->id, reinterpret_cast<const std::uint8_t&>(g->wait_reason));
  g->move(GState::running, GState::waiting);
  if (g->bound) [[unlikely]]
    return park_bound(m, g, commit, argument);
  switch_away(m, g, next_at_hand(m), commit, argument);
}

[[gnu::noinline]] void park_profiled(WaitReason reason, Commit commit, void* argument) {
  std::int64_t since_ns = base::now_ns();
  park_now(reason, commit, argument);
  wait_profile.note(current_m(), reason, base::now_ns() - since_ns);
}

}  // namespace

void park(WaitReason reason, Commit commit, void* argument) {
  if (wait_profile.is_on()) [[unlikely]]
    return park_profiled(reason, commit, argument);
  park_now(reason, commit, argument);
}

bool is_worth_spinning(M* m) {
  Search::View view = runtime->search.view();
  return runtime->ps.count() > view.idle + view.searching + 1 && m->p->queue.is_empty();
}

namespace {

// A plain thread may come when run() is over. Then the goroutine is gone.
[[gnu::noinline]] void ready_from_outside(G* g) {
  if (Visit visit; visit) {
    g->move(GState::waiting, GState::runnable);
    MAGPIE_PROBE(ready, g->id);
    if (traced()) trace_ready(nullptr, g, Place::urgent, Source::plain_thread);
    runtime->global.push_urgent(g);
    runtime->chaos.disturb();
    wake_searcher(nullptr);
    if (runtime->search.view().idle == 0) runtime->sysmon.look_soon();
  }
}

[[gnu::noinline]] void ready_instead_of_next(M* m, G* g) { put_next(m, g); }

[[gnu::noinline]] void ready_traced(M* m, G* g) {
  trace_ready(m, g, Place::runnext, Source::goroutine);
  put_next(m, g);
}

}  // namespace

// The usual path, an empty runnext, calls nothing and saves no registers.
void ready(G* g) {
  M* m = current_m();
  if (m == nullptr) [[unlikely]]
    return ready_from_outside(g);
  MAGPIE_DCHECK(m->grip.is_inside());
  g->move(GState::waiting, GState::runnable);
  MAGPIE_PROBE(ready, g->id);
  if (traced()) [[unlikely]]
    return ready_traced(m, g);
  if (!m->p->queue.next.put_if_empty(g)) return ready_instead_of_next(m, g);
  wake_searcher(m);
}

}  // namespace magpie::sched
