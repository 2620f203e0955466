// fork.h: the child of a fork() has one thread and no runtime.
//
// None of the runtime's threads is there, so nothing of it could go on. The child's only thread is a plain one:
// goroutine_id() is 0, go() throws, run() starts a new runtime. What the old one owned stays as it is, as other
// threads may have been in the middle of it. A goroutine that returns in the child ends the process with a message.
// fork() followed by exec() needs none of this, and works from any goroutine.
#pragma once

namespace magpie::sched {

// A goroutine's body has returned in the child.
[[noreturn]] void returned_in_forked_child();

// In the child: outsiders find it closed, and run() may be called.
void forget_outsiders();
void forget_run();

}  // namespace magpie::sched
