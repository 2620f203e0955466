// park.h: the door for everything that blocks: park and ready.
#pragma once

#include "sched/core/m.h"

namespace magpie::sched {

// Blocks the calling goroutine until ready(). `commit` runs after its registers are saved, on
// another stack. It tells the waker of the goroutine, and may release a lock. From then on the
// goroutine may already be running again. It returns false if the goroutine need not wait.
// `argument` is null, or points into the goroutine's stack, to a word that dumps read: a Waiter, or
// what the goroutine waits for (wait_object.h).
void park(WaitReason reason, Commit commit, void* argument);

// Whether m's goroutine may wait a moment without parking. True: the goroutine it waits for may run
// now, on another P, and no other goroutine could use this P.
bool is_worth_spinning(M* m);

// Makes a parked goroutine run. The waker that its commit step told calls this, exactly once per
// park, from any thread.
void ready(G* g);

}  // namespace magpie::sched
