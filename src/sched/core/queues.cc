#include "sched/core/queues.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sched/core/slice.h"
#include "sched/policy.h"
#include "sched/rest/wake.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"

namespace magpie::sched {
namespace {

// Drops the entries that joiners left behind. Moves the others to the front; returns their number.
std::size_t sweep(M* m, G** entries, std::size_t count) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    G* g = entries[i];
    if (!g->joinable || !g->claim.is_left_behind() || admit(m, g)) entries[kept++] = g;
  }
  return kept;
}

// Joiners leave entries in the global queue too. A goroutine that only starts and joins others
// never empties it. So it sweeps the front when it adds to the end: a few entries, and more while
// all of them are useless.
void sweep_global(M* m) {
  std::uint32_t node = m->p->home.node_number;
  G* front[8];
  for (;;) {
    std::size_t taken = runtime->global.pop_usual(node, front);
    std::size_t kept = sweep(m, front, taken);
    if (kept != 0) runtime->global.push_front(node, {front, kept});
    if (kept != 0 || taken == 0) return;
  }
}

}  // namespace

// If joiners left all entries of the ring behind, spill only sweeps them. Goroutines that came from
// the global queue go back to its front: each has waited in that queue before.
void spill(M* m, G* g) {
  P* p = m->p;
  runtime->chaos.disturb();
  do {
    G* batch[RunQueue::kHalf + 1];
    G*(&half)[RunQueue::kHalf] = reinterpret_cast<G*(&)[RunQueue::kHalf]>(batch);
    std::size_t old = 0;
    std::size_t taken = p->queue.take_half(half, &old);
    std::size_t kept_old = sweep(m, batch, old);
    std::size_t kept_new = sweep(m, batch + old, taken - old);
    if (kept_old + kept_new != 0) {
      batch[old + kept_new++] = g;
      if (g->joinable) sweep_global(m);
      if (kept_old != 0) runtime->global.push_front(p->home.node_number, {batch, kept_old});
      runtime->global.push(p->home.node_number, {batch + old, kept_new});
      p->counters.overflows.increment();
      if (traced()) trace_p(p, Kind::spill, kept_old + kept_new);
      p->counters.goroutines_spilled.add(kept_old + kept_new);
      look_at_slice(p);
      return;
    }
  } while (!p->queue.push(g));  // there is room: all were swept, or thieves were faster
}

void put_in_inbox(M* m, std::span<G* const> woken) {
  P* p = m->p;
  Search::View view = runtime->search.view();
  bool goes_to_ring = policy::others_could_run(view) || p->is_empty() || !may_set_aside(p);
  std::size_t fit = goes_to_ring ? 0 : p->inbox.room();
  fit = std::min(fit, woken.size());
  for (G* g : woken.first(fit)) p->inbox.put(g);
  // The inbox has the next turn, unless it had the last one.
  if (fit != 0) {
    bool was_last = p->inbox_tick == p->counters.ticks.read();
    p->ticks_to_look = std::min<std::int32_t>(p->ticks_to_look, was_last ? 1 : 0);
  }
  for (G* g : woken.subspan(fit)) put_last(m, g);
  if (fit != woken.size()) wake_searcher(m);
}

void put_global(G* g) {
  runtime->global.push(g);
  wake_searcher(nullptr);
}

bool admit_joinable(M* m, G* g) {
  if (m != nullptr && m->from_stopped == g) [[unlikely]] {
    m->from_stopped = nullptr;
    return true;
  }
  switch (g->claim.meet_entry()) {
    case ClaimWord::Fate::run:
      return true;
    case ClaimWord::Fate::drop:
      return false;
    case ClaimWord::Fate::free_record:
      free_record(m, g);
      return false;
  }
  return true;
}

void drop_extra(G* g) {
  g->asked_for_stack = false;
  delete std::exchange(g->extra, nullptr);
}

void free_record_slow(M* m, G* g) {
  MAGPIE_DCHECK(g->extra == nullptr);
  g->state.store(GState::free, base::relaxed);
  if (m != nullptr && m->p != nullptr) {
    m->p->records.give(runtime->records, g);
  } else {
    runtime->records.give({&g, 1});
  }
}

}  // namespace magpie::sched
