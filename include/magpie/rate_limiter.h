// rate_limiter.h: limits how often something happens, with bursts: a token bucket.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include <magpie/context.h>
#include <magpie/detail/api.h>
#include <magpie/detail/deadline.h>
#include <magpie/sync.h>

namespace magpie {

// A bucket that holds at most `burst` tokens and gets `rate` new ones per second. It is full at
// first. A caller that waits has its tokens reserved, in the order in which the callers came.
// Tokens that a caller gives up go to later callers; the turns of other waiting callers do not
// change. Any number of goroutines and threads may use a limiter at once.
class MAGPIE_API RateLimiter {
 public:
  // Throws std::invalid_argument unless rate is positive and finite and burst is at least 1.
  RateLimiter(double rate, std::int64_t burst);
  RateLimiter(const RateLimiter&) = delete;
  RateLimiter& operator=(const RateLimiter&) = delete;

  // Takes the tokens if they are there. False: they are not, and it took nothing. Never blocks for
  // long.
  bool allow(std::int64_t tokens = 1);

  // Blocks until it has the tokens. False: the context was cancelled first, or the tokens come
  // after its deadline; it took nothing. Throws std::invalid_argument for more tokens than the
  // bucket holds, std::bad_alloc.
  bool wait(const Context& context, std::int64_t tokens = 1);

  // As above, without a limit.
  void wait(std::int64_t tokens = 1) { (void)wait(Context::background(), tokens); }

  // As above, until time is up. If the tokens come later than that, returns false at once and takes
  // nothing. Any clock will do.
  template <class Rep, class Period>
  bool wait_for(std::chrono::duration<Rep, Period> duration, std::int64_t tokens = 1) {
    return wait_within(Context::background(), detail::deadline_after(duration), tokens);
  }
  template <class Clock, class Duration>
  bool wait_until(std::chrono::time_point<Clock, Duration> time, std::int64_t tokens = 1) {
    return wait_within(Context::background(), detail::deadline_at(time), tokens);
  }

 private:
  // Times and costs are in ticks.
  struct Interval {
    std::int64_t begin, end;
  };

  bool wait_within(const Context& context, detail::DeadlineNs deadline, std::int64_t tokens);
  std::int64_t ticks_now() const;
  std::int64_t cost_of(std::int64_t tokens) const;
  std::int64_t find_locked(std::int64_t cost, std::int64_t now);
  void reserve_locked(std::int64_t begin, std::int64_t cost);
  void give_up_locked(Interval interval) noexcept;

  // fixed after construction
  const std::int64_t burst_;
  const std::int64_t tick_ns_;
  const double ticks_per_token_;

  Mutex mutex_;
  // guarded by mutex_
  std::int64_t full_at_ = 0;  // when the bucket would be full again: the end of the last interval
  std::vector<Interval> given_up_;  // before full_at_, in order, not adjacent
};

}  // namespace magpie
