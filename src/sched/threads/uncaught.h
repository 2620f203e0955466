// uncaught.h: an exception leaves a goroutine.
//
// No frame catches it on the way to the first frame of the stack (context/switch.h), which asks
// here. If the user has set no handler, the program ends where the exception was thrown. So the
// message, the user's terminate handler, a debugger and the core file find the thrower's frames.
// With a handler, the frames are unwound, the handler is called, and the goroutine ends.
#pragma once

#include "sched/core/g.h"

namespace magpie::sched {

// Call this before the first goroutine runs. `go_on` ends the goroutine and continues with the
// loop.
void catch_uncaught(void (*go_on)());

}  // namespace magpie::sched
