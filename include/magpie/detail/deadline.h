// deadline.h: durations and time points as the runtime counts them. Not part of the API.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>
#include <utility>

namespace magpie::detail {

// Nanoseconds of the steady clock.
using DeadlineNs = std::int64_t;
inline constexpr DeadlineNs kNoDeadline = std::numeric_limits<DeadlineNs>::max();

// From here on a number of nanoseconds is too large to count.
inline constexpr double kUncountableNs = 9.2e18;

// Not below `ns`, nor below what `ns` was before it became a floating-point number.
constexpr std::int64_t round_up(double ns) {
  constexpr double kMost = kUncountableNs * (1 + 4 * std::numeric_limits<double>::epsilon());
  double least = ns * (1 + 2 * std::numeric_limits<double>::epsilon()) + 1;
  return static_cast<std::int64_t>(least < kMost ? least : kMost);
}

// Converts the duration to nanoseconds. A duration below zero becomes 0, one that is too long to
// count kNoDeadline.
template <class Rep, class Period>
constexpr std::int64_t whole_ns(std::chrono::duration<Rep, Period> duration) {
  // As a floating-point number first: the exact conversion of a long duration overflows.
  double ns = std::chrono::duration<double, std::nano>(duration).count();
  if (!(ns > 0)) return 0;  // no number at all counts as zero
  if (ns >= kUncountableNs) return kNoDeadline;
  // The exact conversion multiplies before it divides. For the samples of a sound, or the ticks of
  // an odd clock, that may overflow although the result does not.
  using NsPerTick = std::ratio_divide<Period, std::nano>;
  if (NsPerTick::den != 1 && ns >= kUncountableNs / static_cast<double>(NsPerTick::den))
    return round_up(ns);
  auto whole = std::chrono::duration_cast<std::chrono::nanoseconds>(duration);
  // A fraction of a nanosecond counts as a whole one, so that no wait ends too early.
  if (std::chrono::duration<double, std::nano>(whole).count() < ns && ns < 1e15) ++whole;
  return whole.count();
}

// Adds two numbers that are not below zero. A sum that is too large to count becomes kNoDeadline.
constexpr std::int64_t sum_of_ns(std::int64_t a, std::int64_t b) {
  return b > kNoDeadline - a ? kNoDeadline : a + b;
}

inline DeadlineNs steady_now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The time that lies `duration` after now; kNoDeadline if that is too far away to count. A duration
// of zero or less means now.
template <class Rep, class Period>
DeadlineNs deadline_after(std::chrono::duration<Rep, Period> duration) {
  return sum_of_ns(steady_now_ns(), whole_ns(duration));
}

// Nanoseconds since a clock's epoch, rounded up; before it, a number below zero. A time that is too
// far away to count becomes kNoDeadline, or -kNoDeadline. What is counted this way can be compared
// and subtracted. Time points themselves cannot: the common unit of a clock and of the samples of a
// sound overflows, and a difference of unsigned numbers is never below zero.
template <class Rep, class Period>
constexpr std::int64_t ns_since_epoch(std::chrono::duration<Rep, Period> time) {
  double ns = std::chrono::duration<double, std::nano>(time).count();
  if (!(ns < 0)) return whole_ns(time);
  if (ns <= -kUncountableNs) return -kNoDeadline;
  using NsPerTick = std::ratio_divide<Period, std::nano>;
  if (NsPerTick::den != 1 && ns <= -kUncountableNs / static_cast<double>(NsPerTick::den))
    return static_cast<std::int64_t>(ns * (1 - 2 * std::numeric_limits<double>::epsilon()));
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

// The time point on the steady clock. The time of another clock is converted by what both clocks
// say now. A time that is too far away to count becomes kNoDeadline.
template <class Clock, class Duration>
DeadlineNs deadline_at(std::chrono::time_point<Clock, Duration> time) {
  if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
    return whole_ns(time.time_since_epoch());
  } else {
    std::int64_t now = ns_since_epoch(Clock::now().time_since_epoch());
    std::int64_t when = ns_since_epoch(time.time_since_epoch());
    if (when == kNoDeadline) return kNoDeadline;
    if (when == -kNoDeadline) return 0;
    if (when <= now) return steady_now_ns();
    // Unsigned: between a time before the epoch and one after it there may be too many.
    std::uint64_t left = static_cast<std::uint64_t>(when) - static_cast<std::uint64_t>(now);
    if (left > static_cast<std::uint64_t>(kNoDeadline)) return kNoDeadline;
    return sum_of_ns(steady_now_ns(), static_cast<std::int64_t>(left));
  }
}

// The deadline as a time point of the steady clock. kNoDeadline becomes max(); deadline_at() turns
// that back.
constexpr std::chrono::steady_clock::time_point steady_time(DeadlineNs deadline) {
  static_assert(std::chrono::steady_clock::time_point::max().time_since_epoch() ==
                std::chrono::nanoseconds(kNoDeadline));
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline));
}

// Whether the clock has yet to reach the time.
template <class Clock, class Duration>
bool is_to_come(std::chrono::time_point<Clock, Duration> time) {
  std::int64_t when = ns_since_epoch(time.time_since_epoch());
  return when == kNoDeadline || ns_since_epoch(Clock::now().time_since_epoch()) < when;
}

// Calls wait(deadline), which returns false when time is up. A clock that can be set may not have
// reached `time` by then; in that case this waits again.
template <class Clock, class Duration, class Wait>
auto wait_until(std::chrono::time_point<Clock, Duration> time, Wait&& wait) {
  auto result = wait(deadline_at(time));
  if constexpr (!std::is_same_v<Clock, std::chrono::steady_clock>) {
    while (!result && is_to_come(time)) result = wait(deadline_at(time));
  }
  return result;
}

}  // namespace magpie::detail
