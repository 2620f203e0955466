#include "sched/queues.h"

#include <utility>

#include "base/check.h"
#include "sched/runtime.h"
#include "sched/slice.h"
#include "sched/wake.h"

namespace magpie::sched {
namespace {

// Drops the entries that joiners left behind; returns how many others there are, moved to the front.
std::size_t sweep(M* m, G** entries, std::size_t count) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    G* g = entries[i];
    if (!g->joinable || !g->claim.is_left_behind() || admit(m, g)) entries[kept++] = g;
  }
  return kept;
}

// Joiners leave entries in the global queue too. A goroutine that only starts and joins others never
// empties it, so it sweeps the front when it adds to the end: a few entries, and on while all of them are
// useless.
void sweep_global(Runtime& rt, M* m) {
  G* front[8];
  for (;;) {
    std::size_t taken = rt.global.pop_share(1, front);
    std::size_t kept = sweep(m, front, taken);
    if (kept != 0) rt.global.push_front({front, kept});
    if (kept != 0 || taken == 0) return;
  }
}

}  // namespace

// A ring full of entries that joiners left behind is just swept.
void spill(Runtime& rt, M* m, G* g) {
  P* p = m->p;
  rt.chaos.disturb();
  do {
    G* batch[RunQueue::kHalf + 1];
    G*(&half)[RunQueue::kHalf] = reinterpret_cast<G*(&)[RunQueue::kHalf]>(batch);
    std::size_t taken = p->queue.take_half(half);
    std::size_t count = sweep(m, batch, taken);
    if (count != 0) {
      batch[count] = g;
      if (g->joinable) sweep_global(rt, m);
      rt.global.push({batch, count + 1});
      p->counters.overflows.increment();
      p->counters.spilled.add(count + 1);
      look_at_slice(rt, p);
      return;
    }
  } while (!p->queue.push(g));  // there is room: all were swept, or thieves were faster
}

void put_global(Runtime& rt, G* g) {
  rt.global.push(g);
  wake_searcher(rt, nullptr);
}

bool admit_joinable(M* m, G* g) {
  switch (g->claim.meet_entry()) {
    case ClaimWord::Entry::run:
      return true;
    case ClaimWord::Entry::drop:
      return false;
    case ClaimWord::Entry::free_record:
      free_record(m, g);
      return false;
  }
  return true;
}

void drop_extra(G* g) { delete std::exchange(g->extra, nullptr); }

void free_record_slowly(M* m, G* g) {
  MAGPIE_DCHECK(g->extra == nullptr);
  g->state.store(GState::free, base::relaxed);
  if (m != nullptr && m->p != nullptr) {
    m->p->records.give(runtime->records, g);
  } else {
    runtime->records.give({&g, 1});
  }
}

}  // namespace magpie::sched
