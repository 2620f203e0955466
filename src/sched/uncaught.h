// uncaught.h: an exception left a goroutine.
#pragma once

#include "sched/g.h"

namespace magpie::sched {

// Call inside the catch block, on the goroutine. Calls the user's handler; without one prints the goroutine's
// number, name and what() and aborts.
void handle_uncaught(G* g);

}  // namespace magpie::sched
