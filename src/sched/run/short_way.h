// short_way.h: closes the short way of locks, for a run() that waits for goroutines which never
// enter the runtime. What that means: <magpie/detail/short_way.h>.
#pragma once

namespace magpie::sched {

void close_short_way();
void open_short_way();

}  // namespace magpie::sched
