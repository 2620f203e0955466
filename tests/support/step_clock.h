// step_clock.h: a clock for tests of waits until a time.
#pragma once

#include <atomic>
#include <chrono>

namespace magpie::support {

// A clock that anybody can set: a millisecond passes with each look at it.
struct StepClock {
  using duration = std::chrono::milliseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<StepClock>;
  static constexpr bool is_steady = false;
  static inline std::atomic<rep> looks{0};
  static time_point now() { return time_point(duration(looks.fetch_add(1))); }
};

static_assert(std::chrono::is_clock_v<StepClock> && !StepClock::is_steady);

}  // namespace magpie::support
