// deadlock.h: nobody can ever run again. Says so instead of hanging in silence.
//
// Seen by the last thread that goes to sleep: all Ps are idle, all queues empty, and a goroutine that waits
// can only be woken by another goroutine or by a thread that is not ours. So it is a deadlock if no plain
// thread has ever used this runtime and the process has no threads but ours. Threads that exist and never
// call us hide a deadlock; nothing makes one up.
#pragma once

#include "base/annotations.h"
#include "sched/rest/idle_lock.h"

namespace magpie::sched {

// As far as the scheduler can tell, can nobody run?
[[nodiscard]] bool may_be_deadlock() MAGPIE_REQUIRES(idle_lock());

// Does the process have threads that are not the runtime's? Ask may_be_deadlock() before and again after: a thread
// that woke somebody and ended in between is no longer there, but has been seen to come.
[[nodiscard]] bool has_other_threads();

// The process has a thread of the library's own that belongs to no runtime. It wakes only goroutines
// that wait for it: is_awaited() tells whether there are any, or the thread is about to wake one.
// Asked when all goroutines wait. Null: there is no such thread.
void set_library_thread(bool (*is_awaited)());

// Acts on Options::on_deadlock.
void report_deadlock();

}  // namespace magpie::sched
