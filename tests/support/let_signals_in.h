// let_signals_in.h: loops that the runtime has to stop by a signal.
#pragma once

#include <atomic>
#include <chrono>
#include <ctime>

#include "base/sanitizer.h"

namespace magpie::support {

// ThreadSanitizer delivers a signal at the next call that it intercepts: a loop without any call is
// never stopped. This is one that does not sleep; elsewhere it is nothing.
inline void let_signals_in() {
#if defined(MAGPIE_TSAN)
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
#endif
}

// Loops on the CPU without calling the runtime until told otherwise.
inline void spin_until(const std::atomic<bool>& stop) {
  while (!stop.load(std::memory_order_relaxed)) let_signals_in();
}

// A goroutine stays on its thread as long as it does not call the runtime.
inline std::chrono::nanoseconds cpu_time_of_this_thread() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace magpie::support
