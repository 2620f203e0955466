// fork.h: the child of a fork() has one thread and no runtime.
//
// The child has none of the runtime's threads, so the runtime could not continue. The child's only
// thread is a plain thread: goroutine_id() is 0, go() throws, run() starts a new runtime. What the
// old runtime owned stays as it is, as other threads may have been changing it. A goroutine that
// returns in the child ends the process with a message. fork() followed by exec() needs none of
// this, and works from any goroutine.
#pragma once

namespace magpie::sched {

// A goroutine's body has returned in the child.
[[noreturn]] void returned_in_forked_child();

// In the child: outsiders find the gate closed, and run() may be called.
void forget_outsiders();
void forget_run();

}  // namespace magpie::sched
