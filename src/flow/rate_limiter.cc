// rate_limiter.cc: the bucket is one number, the time at which it would be full.
//
//   Taking a token moves that time by 1 / rate. There are tokens as long as it is less than burst / rate ahead of now;
//   whoever moves it further waits for the difference. So nobody has to refill anything, and those who wait have their
//   turns reserved in the order in which they came.
#include <magpie/rate_limiter.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <stdexcept>
#include <string>

#include <magpie/select.h>
#include <magpie/time.h>

namespace magpie {
namespace {

double checked_rate(double rate) {
  if (!std::isfinite(rate) || rate <= 0)
    throw std::invalid_argument(
        "magpie: RateLimiter: the rate must be a positive number per second");
  return rate;
}

std::int64_t checked_burst(std::int64_t burst) {
  if (burst < 1)
    throw std::invalid_argument("magpie: RateLimiter: a burst of at least 1 is needed");
  return burst;
}

}  // namespace

RateLimiter::RateLimiter(double rate, std::int64_t burst)
    : ns_per_token_(1e9 / checked_rate(rate)), burst_(checked_burst(burst)), full_at_ns_(0) {}

std::int64_t RateLimiter::cost_ns(std::int64_t tokens) const {
  constexpr double kMost = 1e18;  // thirty years
  return static_cast<std::int64_t>(std::min(ns_per_token_ * static_cast<double>(tokens), kMost));
}

bool RateLimiter::allow(std::int64_t tokens) {
  if (tokens < 1) return true;
  if (tokens > burst_) return false;
  std::lock_guard hold(mutex_);
  std::int64_t now = detail::steady_now_ns();
  std::int64_t full_at = std::max(full_at_ns_, now) + cost_ns(tokens);
  if (full_at - now > cost_ns(burst_)) return false;
  full_at_ns_ = full_at;
  return true;
}

bool RateLimiter::wait(const Context& context, std::int64_t tokens) {
  if (tokens > burst_) {
    throw std::invalid_argument("magpie: RateLimiter::wait for " + std::to_string(tokens) +
                                " tokens: its burst is " + std::to_string(burst_));
  }
  if (context.cancelled()) return false;
  if (tokens < 1) return true;
  std::int64_t turn;
  {
    std::lock_guard hold(mutex_);
    std::int64_t now = detail::steady_now_ns();
    std::int64_t full_at = std::max(full_at_ns_, now) + cost_ns(tokens);
    turn = full_at - cost_ns(burst_);
    auto deadline = context.deadline();
    if (deadline && turn > now && TimePoint(std::chrono::nanoseconds(turn)) > *deadline)
      return false;
    full_at_ns_ = full_at;
    if (turn <= now) return true;
  }
  std::size_t ended =
      select(on_timeout(std::chrono::nanoseconds(turn - detail::steady_now_ns()), [] {}),
             on_recv(context.done(), [](bool) {}));
  if (ended == 0) return true;
  // Its turn is free again for those who come later; those who wait already keep theirs.
  std::lock_guard hold(mutex_);
  full_at_ns_ -= cost_ns(tokens);
  return false;
}

}  // namespace magpie
