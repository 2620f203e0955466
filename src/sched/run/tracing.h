// tracing.h: the hooks that write the runtime's events to the execution trace.
//
// Each hook stands where the counter or the state that it tells of changes, before other threads
// can see the change: so the times of cause and effect are in order. `if (traced())` is two
// instructions while nothing is recorded; the rest is out of line.
//
// Who may write  the holder of a P, inside the runtime, to the P's stream: also sysmon, for a P
//                that it has taken. All others write to the outside stream, under its lock.
#pragma once

#include <cstdint>
#include <string_view>

#include "sched/core/g.h"
#include "sched/core/m.h"
#include "sched/core/p.h"
#include "trace/buffer.h"

namespace magpie::sched {

using trace::Kind;
using trace::Place;
using trace::Source;

[[nodiscard, gnu::always_inline]] inline bool traced() { return trace::is_on(); }

// An event in the stream of p, which the caller holds.
[[gnu::noinline]] void trace_p(P* p, Kind kind);
[[gnu::noinline]] void trace_p(P* p, Kind kind, std::uint64_t a);
[[gnu::noinline]] void trace_p(P* p, Kind kind, std::uint64_t a, std::uint64_t b);
[[gnu::noinline]] void trace_p(P* p, Kind kind, std::uint64_t a, std::uint64_t b, std::uint64_t c);

// An event in the outside stream.
[[gnu::noinline]] void trace_outside(Kind kind, std::uint64_t a = 0, std::uint64_t b = 0,
                                     std::uint64_t c = 0, std::uint64_t d = 0);

// m begins to hold its P.
[[gnu::noinline]] void trace_proc_begin(M* m);

// A thread comes for p, which nobody holds and the caller is about to hand over. In the stream of p
// itself: so a reader can tell it from the wake-up of a searcher, which its waker tells.
[[gnu::noinline]] void trace_handed_over(P* p);

// g is started, by m's goroutine, or by a plain thread (null). caller: the code that called go().
[[gnu::noinline]] void trace_create(M* m, G* g, const void* caller);

// g begins, or goes on, to run on m.
[[gnu::noinline]] void trace_run(M* m, G* g);

// g leaves m: it waits or yields, as its state says. `next` (null: none) runs at once.
[[gnu::noinline]] void trace_switch(M* m, G* g, G* next);

// The goroutine on m is over.
[[gnu::noinline]] void trace_end(M* m);

// The goroutine on m is about to run the child in place, or has done so.
[[gnu::noinline]] void trace_join_begin(M* m, G* child);
[[gnu::noinline]] void trace_join_end(M* m, G* child, G* parent);

// g is made ready, by the goroutine on m or by what `source` says.
[[gnu::noinline]] void trace_ready(M* m, G* g, Place place, Source source);

// p was taken from the goroutine, which goes on without a P, at the given time.
[[gnu::noinline]] void trace_taken(P* p, std::uint64_t goroutine, trace::Why why,
                                   std::uint64_t now = trace::ticks_now());
inline std::uint64_t id_of_current(const M* m) {
  G* g = m->current;
  return g == nullptr ? 0 : g->id;
}

// The goroutine on m, which had no P, has one again.
[[gnu::noinline]] void trace_back(M* m);

// The goroutine on m enters or leaves blocking(). Called outside the runtime.
[[gnu::noinline]] void trace_blocking(M* m, Kind kind);

// How long the queues are.
[[gnu::noinline]] void trace_queue(P* p);

// Where the goroutine that p runs next comes from, if neither from runnext nor from the ring.
[[gnu::always_inline]] inline void note_place(P* p, Place place) {
  if (traced()) p->came_from = place;
}

// run() begins, or is over. MAGPIE_TRACE may ask for a trace.
void trace_begin_run();
void trace_end_run();

}  // namespace magpie::sched
