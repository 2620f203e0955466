// queues.h: where goroutines that became ready are put, and how they are taken out again.
#pragma once

#include <cstdint>

#include "sched/g.h"
#include "sched/m.h"

namespace magpie::sched {

struct Runtime;

// Puts g in the P's next slot; whoever was there goes to the end of the ring. Starts a searcher if needed.
void put_next(Runtime& rt, M* m, G* g);

// Puts g at the end of the P's ring; half of a full ring goes to the global queue.
void put_last(Runtime& rt, M* m, G* g);

// For plain threads: puts g in the global queue and starts a searcher if needed.
void put_global(Runtime& rt, M* m, G* g);

// A fresh goroutine cannot start for lack of stack memory: back to the queue, with a pause if nothing else is to
// be done, and a message once. Gives up, with a message, when it has been so for long and nothing else runs.
void put_off(Runtime& rt, M* m, G* g);

// Of an entry taken from a queue: true if the goroutine is to be run now. False: the entry was left behind by a
// joiner that runs, or ran, the goroutine itself; it is gone now.
[[nodiscard]] bool admit(M* m, G* g);

// Gives back the record of a goroutine that has ended. `m` may be null: a plain thread.
void free_record(M* m, G* g);

}  // namespace magpie::sched
