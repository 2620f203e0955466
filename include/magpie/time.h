// time.h: goroutines and time. Durations of any kind, time points of the steady clock.
#pragma once

#include <chrono>
#include <cstdint>

#include <magpie/detail/deadline.h>

namespace magpie {

namespace detail {
void sleep_until(DeadlineNs deadline);
}  // namespace detail

// Blocks the goroutine, or a plain thread, for at least so long. Zero or less: returns at once. A duration that is
// too long to count never ends. Does not throw.
template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> duration) {
  if (duration <= duration.zero()) return;
  detail::sleep_until(detail::deadline_after(duration));
}

// Blocks the goroutine, or a plain thread, until then. Returns at once if that is past. Does not throw.
template <class Duration>
void sleep_until(std::chrono::time_point<std::chrono::steady_clock, Duration> time) {
  if (time <= std::chrono::steady_clock::now()) return;
  detail::sleep_until(detail::deadline_at(time));
}

}  // namespace magpie
