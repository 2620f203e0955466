// steal.h: takes goroutines from other Ps.
#pragma once

#include "sched/core/m.h"

namespace magpie::sched {

// Makes four rounds over other Ps that are not idle, near ones first (victims.h), and takes the
// oldest half of the first ring that has any. In the last round it also takes a runnext, after
// giving that P a moment to run it. Null: there was nothing. The M's own ring is empty.
G* steal(M* m);

}  // namespace magpie::sched
