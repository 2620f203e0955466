// park.h: the door for everything that blocks: park and ready.
#pragma once

#include "sched/core/m.h"

namespace magpie::sched {

// Blocks the calling goroutine until ready(). `commit` runs after its registers are saved, on another stack: it tells
// whoever will wake it, and may release a lock; from then on the goroutine may already be running again.
// It returns false if the goroutine need not wait.
void park(WaitReason reason, Commit commit, void* argument);

// Whether m's goroutine may wait a moment without parking: the one it waits for may run now, on another P, and no
// other goroutine could use this one.
bool is_worth_spinning(M* m);

// Makes a parked goroutine run. Exactly once per park, by whoever its commit step told; from any thread.
void ready(G* g);

}  // namespace magpie::sched
