// uncaught.h: an exception leaves a goroutine.
//
// Nobody catches it on the way to the first frame of the stack (context/switch.h), which asks here. Without a handler of the
// user's the program ends where the exception was thrown, so that the message, the user's terminate handler, a debugger and
// the core file find the thrower's frames. With one the frames are unwound, the handler is called, the goroutine ends.
#pragma once

#include "sched/core/g.h"

namespace magpie::sched {

// Before the first goroutine runs. `go_on` ends the goroutine and goes on with the loop.
void catch_uncaught(void (*go_on)());

}  // namespace magpie::sched
