// queues.h: where ready goroutines are put, and how they are taken out again.
#pragma once

#include <cstdint>
#include <span>

#include "sched/core/g.h"
#include "sched/core/m.h"
#include "sched/rest/wake.h"
#include "sched/run/runtime.h"

namespace magpie::sched {

// Call this after putting a goroutine in any queue. It starts a searcher if no M searches and a P
// is idle. `m` is the caller's M; null: a plain thread.
[[gnu::always_inline]] inline void wake_searcher(M* m) {
  if (runtime->search.try_book_searcher()) [[unlikely]]
    start_searcher(m);
}

// The ring is full: its oldest half and g go to the global queue together.
void spill(M* m, G* g);

// Puts g at the end of the P's ring. The caller owes a wake_searcher().
[[gnu::always_inline]] inline void put_last(M* m, G* g) {
  if (!m->p->queue.push(g)) [[unlikely]]
    spill(m, g);
}

// Puts g in the P's runnext. A goroutine that was there goes to the end of the ring. Starts a
// searcher if needed.
[[gnu::always_inline]] inline void put_next(M* m, G* g) {
  if (G* displaced = m->p->queue.next.put(g)) put_last(m, displaced);
  wake_searcher(m);
}

// Whether goroutines may be set aside for the holder of p alone. With one P no other M could run
// them.
inline bool may_set_aside(const P* p) { return p->may_set_aside || runtime->ps.count() == 1; }

// For goroutines that became ready but were not woken by a goroutine of this P. As many as fit go
// to its inbox, the others to the end of its ring. All go to the ring in four cases: a P is idle,
// an M searches, this P has nothing to run before them, or the P may set nothing aside.
void put_in_inbox(M* m, std::span<G* const> woken);

// For plain threads: puts g in the global queue and starts a searcher if needed.
void put_global(G* g);

// For an entry of a joinable goroutine that was taken from a queue; see admit().
[[nodiscard]] bool admit_joinable(M* m, G* g);

// For an entry that was taken from a queue. True: run the goroutine now. False: a joiner runs the
// goroutine itself, or ran it, and left this entry behind. The entry is gone now.
[[nodiscard]] inline bool admit(M* m, G* g) { return !g->joinable || admit_joinable(m, g); }

// Call this outside the runtime, before free_record. It frees the part that only few goroutines
// have.
void drop_extra(G* g);

// Gives back the record of a goroutine that has ended. `m` may be null: a plain thread.
void free_record_slow(M* m, G* g);
inline void free_record(M* m, G* g) {
  bool plain = m != nullptr && m->p != nullptr && !m->p->records.is_full();
  if (!plain) [[unlikely]]
    return free_record_slow(m, g);
  g->state.store(GState::free, base::relaxed);
  m->p->records.keep(g);
}

}  // namespace magpie::sched
