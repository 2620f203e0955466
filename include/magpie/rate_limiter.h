// rate_limiter.h: so many per second, with bursts: a token bucket.
#pragma once

#include <cstdint>

#include <magpie/context.h>
#include <magpie/sync.h>

namespace magpie {

// A bucket that holds at most `burst` tokens and gets `rate` new ones per second; it is full at first. Whoever takes
// from it in advance waits for it, in the order of coming. May be used by many at once, from any thread.
class RateLimiter {
 public:
  // Throws std::invalid_argument unless rate is positive and finite and burst is at least 1.
  RateLimiter(double rate, std::int64_t burst);
  RateLimiter(const RateLimiter&) = delete;
  RateLimiter& operator=(const RateLimiter&) = delete;

  // Takes so many tokens if they are there. Never blocks for long. False: too many now; nothing was taken.
  bool allow(std::int64_t tokens = 1);

  // Blocks until it has so many tokens. False: the context was cancelled first, or its deadline comes before that; nothing
  // was taken. Throws std::invalid_argument for more tokens than the bucket holds.
  bool wait(const Context& context, std::int64_t tokens = 1);

  // The same without an end.
  void wait(std::int64_t tokens = 1) { (void)wait(Context::background(), tokens); }

 private:
  std::int64_t cost_ns(std::int64_t tokens) const;

  // fixed after construction
  const double ns_per_token_;
  const std::int64_t burst_;

  Mutex mutex_;
  // guarded by mutex_: when the bucket would be full again; at most as far ahead as an empty bucket takes to fill, but for
  // those who wait
  std::int64_t full_at_ns_;
};

}  // namespace magpie
