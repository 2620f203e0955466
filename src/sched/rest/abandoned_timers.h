// abandoned_timers.h: timers that fired after their last owner had gone.
//
// The M that fires them is inside the runtime and must not wait for the allocator. So a goroutine
// drops them, or the end of the runtime does.
#pragma once

#include <mutex>

#include "base/lock.h"
#include "timer/timer.h"

namespace magpie::sched {

class AbandonedTimers {
 public:
  void put(timer::Timer& timer) {
    std::lock_guard hold(lock_);
    timer.next = first_;
    first_ = &timer;
  }

  // Null: none is left.
  timer::Timer* take() {
    std::lock_guard hold(lock_);
    timer::Timer* taken = first_;
    if (taken != nullptr) first_ = taken->next;
    return taken;
  }

 private:
  base::Lock lock_;
  // guarded by lock
  timer::Timer* first_ = nullptr;  // linked by `next`: they are in no set
};

}  // namespace magpie::sched
