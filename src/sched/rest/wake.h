// wake.h: starts searchers for idle Ps, and wakes sleeping threads.
#pragma once

namespace magpie::sched {

struct M;

enum class Searching { no, yes };  // yes: counted in Search already

// Runs one more searcher, already booked, if a P is idle. `m` is the caller's M; null: a plain
// thread. Call this through wake_searcher (queues.h).
void start_searcher(M* m);

// Wakes a sleeping M. The caller took it off the list and has stored what it is handed.
void wake(M* m);

}  // namespace magpie::sched
