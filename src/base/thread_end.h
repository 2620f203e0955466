// thread_end.h: calls a function when the calling thread ends.
//
// The call happens among the destructors of thread_locals: the last registered call comes first,
// and a call that is registered meanwhile comes next. So an object of ours can be made anew, and
// registered again, if the destructor of a user's thread_local uses it after it was destroyed. A
// thread_local of ours would be destroyed once, and used afterwards.
#pragma once

namespace magpie::base {

void at_thread_end(void (*call)(void* argument), void* argument);

}  // namespace magpie::base
