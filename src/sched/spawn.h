// spawn.h: makes goroutines.
#pragma once

#include <cstddef>
#include <cstdint>

#include <magpie/detail/task.h>

#include "sched/m.h"

namespace magpie::sched {

struct Runtime;

// A goroutine record, not started. `m`: the caller's, null for a plain thread. Throws std::bad_alloc.
G* new_goroutine(Runtime& rt, M* m);

// Makes it ready to run for the first time.
void start_goroutine(Runtime& rt, M* m, G* g, detail::TaskBody body);

}  // namespace magpie::sched
