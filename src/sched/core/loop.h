// loop.h: an M runs one goroutine after the other. There is no scheduler stack.
//
// The loop runs on a pooled stack and calls a fresh goroutine there. If the goroutine ends without
// blocking, the loop goes on below it: nothing was switched, and no stack was bound. If it blocks, it
// keeps the stack, loop frame and all, and its M goes on elsewhere (switching.h). When the goroutine is
// resumed, on whatever M, and returns, the loop frame under it goes on as the loop of that M. So the
// locals of a loop must never name the M across a call.
#pragma once

#include "sched/core/m.h"

namespace magpie::sched {

// Runs goroutines until the M goes on elsewhere. On a pooled stack, entered from its top.
[[noreturn]] void loop(M* m);

// On a stack whose frames an exception has unwound, as the goroutine that threw it: ends the goroutine
// and goes on with a loop.
[[noreturn]] void go_on_after_uncaught();

}  // namespace magpie::sched
