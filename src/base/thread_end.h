// thread_end.h: what is to be done when the calling thread ends.
//
// It is done among the destructors of thread_locals: what was registered last comes first, and what is
// registered meanwhile comes next. So what a thread has of ours can be made anew, and registered
// again, if the destructor of somebody's thread_local uses it after it was destroyed. A
// thread_local of ours would be destroyed once, and used afterwards.
#pragma once

namespace magpie::base {

void at_thread_end(void (*call)(void* argument), void* argument);

}  // namespace magpie::base
