// deadlock.h: nobody can ever run again. Says so instead of hanging in silence.
//
// Seen by the last thread that goes to sleep: all Ps are idle, all queues empty, and a goroutine that waits
// can only be woken by another goroutine or by a thread that is not ours. So it is a deadlock if no plain
// thread has ever used this runtime and the process has no threads but ours. Threads that exist and never
// call us hide a deadlock; nothing makes one up.
#pragma once

namespace magpie::sched {

struct Runtime;

// Call before sleeping, with the lists' lock held: could this be a deadlock, as far as the scheduler can tell?
[[nodiscard]] bool may_be_deadlock(Runtime& rt);

// Call without the lock when it may be: looks at the process's threads and acts on Options::on_deadlock.
void handle_deadlock(Runtime& rt);

}  // namespace magpie::sched
