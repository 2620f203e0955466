// clock.h: monotonic time in nanoseconds.
#pragma once

#include <cstdint>
#include <ctime>

namespace magpie::base {

inline std::int64_t read_clock(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

inline std::int64_t now_ns() { return read_clock(CLOCK_MONOTONIC); }

// A few milliseconds old at worst, and several times cheaper to read.
inline std::int64_t coarse_now_ns() { return read_clock(CLOCK_MONOTONIC_COARSE); }

}  // namespace magpie::base
