// idle_lock.h: a name for Idle's lock, for the annotations of headers that Runtime is made of.
#pragma once

namespace magpie::base {
class Lock;
}

namespace magpie::sched {

// Never called, nor defined: runtime.h tells Clang that runtime->idle.lock() is meant.
base::Lock& idle_lock();

}  // namespace magpie::sched
