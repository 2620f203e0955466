// loop.h: an M runs one goroutine after the other. There is no scheduler stack.
//
// The loop runs on a pooled stack and calls a fresh goroutine there. If the goroutine ends without
// blocking, the loop continues below it: nothing was switched, and no stack was bound. If the
// goroutine blocks, it keeps the stack with the loop's frame, and its M continues elsewhere
// (switching.h). Later some M resumes the goroutine. When the goroutine returns, the loop's frame
// under it continues as the loop of that M. So the locals of a loop must never name the M across a
// call.
#pragma once

#include "sched/core/m.h"

namespace magpie::sched {

// Runs goroutines until the M continues elsewhere. Runs on a pooled stack, entered from its top.
[[noreturn]] void loop(M* m);

// Call this on a stack whose frames an exception has unwound, as the goroutine that threw it. Ends
// the goroutine and continues with a loop.
[[noreturn]] void go_on_after_uncaught();

}  // namespace magpie::sched
