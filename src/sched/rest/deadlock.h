// deadlock.h: no goroutine can ever run again. The runtime says so instead of hanging in silence.
//
// The last thread that goes to sleep finds this out: all Ps are idle and all queues are empty. A
// thread that waits in place for its bound goroutine (bound.h) may be the last one too. If the last
// thread ends instead, it wakes another one to look. Then only another goroutine, or a thread that
// is not ours, could wake a goroutine that waits.
//
// Invariant  A deadlock is reported if there was a moment at which every thread of the process was
//            ours or a bystander (bystanders.h), and if from before that moment until after it no
//            goroutine ran, none could run, and no plain thread came in.
// Real       A plain thread that came in before is counted, or has ended: then it has readied its
//            goroutine before it ended, and the second look at the queues comes after the count
//            that misses it (the kernel's lock orders the two). A thread that comes later can only
//            be a bystander, or one that a bystander started, against its promise.
// Not lost   The last M looks as it goes to sleep. After that only the threads that hid the
//            deadlock matter. A bystander makes an M look again as it promises. So does a plain
//            thread that has come in as it ends, and an M looks now and then until it is gone. The
//            same goes for a thread of the runtime's that is about to be gone. The library's own
//            thread makes an M look after all that it does (visit.h). The end of a thread that
//            never came in is not noticed: it hides a deadlock until an M goes to sleep again.
#pragma once

#include "base/annotations.h"
#include "sched/rest/idle_lock.h"

namespace magpie::sched {

// As far as the scheduler can tell: can no goroutine run?
[[nodiscard]] bool may_be_deadlock() MAGPIE_REQUIRES(idle_lock());

// The threads of the process that are neither the runtime's nor bystanders. awaited: goroutines
// wait for the library's own thread, or it is about to do something. unknown: threads come or go,
// and the process may have none in a moment.
enum class OtherThreads { none, some, awaited, unknown };

// Ask may_be_deadlock() before and again after, and compare count_visits(): a thread may wake a
// goroutine and end in between.
[[nodiscard]] OtherThreads look_for_other_threads();

// Acts on Options::on_deadlock.
void report_deadlock();

}  // namespace magpie::sched
