// rate_limiter.cc: tokens are intervals of time.
//
//   A token is an interval of 1 / rate on the time axis. A caller that takes n tokens gets an
//   interval of n of them, which begins now or later and overlaps with no other caller's. The
//   caller's turn comes `burst / rate` before the end of its interval, which may be past already.
//   Usually that is the interval behind all others, from full_at_ on. So nobody has to refill
//   anything, and waiting callers have their turns reserved in the order in which they came. A
//   caller that gives up leaves a gap, and the next caller that fits into it gets it: no other turn
//   changes.
//
// Limit  Take the callers whose turn came between t1 and t2. Each of their intervals begins after
//        t1: an interval whose owner did not wait begins after now, any other at most `burst`
//        before its end, which is `burst` after its turn. And each ends before t2 + burst / rate.
//        As they do not overlap, they hold at most burst + rate * (t2 - t1) tokens.
// Ticks  Time is counted in nanoseconds. If it takes longer than kLongest of them to fill the
//        bucket, time is counted in longer ticks, so that it takes kLongest. No interval ends after
//        kLast, so no sum overflows.
#include <magpie/rate_limiter.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <mutex>
#include <new>
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

constexpr std::int64_t kLongest = 1'000'000'000'000'000'000;
constexpr std::int64_t kLast = 8 * kLongest;

double ns_per_token(double rate) { return 1e9 / checked_rate(rate); }

std::int64_t fitting_tick_ns(double bucket_ns) {
  double tick_ns = std::ceil(bucket_ns / static_cast<double>(kLongest));
  return static_cast<std::int64_t>(std::clamp(tick_ns, 1.0, static_cast<double>(kLongest)));
}

}  // namespace

RateLimiter::RateLimiter(double rate, std::int64_t burst)
    : burst_(checked_burst(burst)),
      tick_ns_(fitting_tick_ns(ns_per_token(rate) * static_cast<double>(burst))),
      ticks_per_token_(std::min(ns_per_token(rate) / static_cast<double>(tick_ns_),
                                static_cast<double>(kLongest) / static_cast<double>(burst))) {}

std::int64_t RateLimiter::ticks_now() const { return detail::steady_now_ns() / tick_ns_; }

// Of no more than the burst. Whole ticks per token if these are many: the product as a
// floating-point number would be inexact, and a bucket not hold its burst one by one.
std::int64_t RateLimiter::cost_of(std::int64_t tokens) const {
  constexpr double kMany = 1e9;
  if (ticks_per_token_ >= kMany) return static_cast<std::int64_t>(ticks_per_token_) * tokens;
  return static_cast<std::int64_t>(ticks_per_token_ * static_cast<double>(tokens));
}

// Where the first interval of that length begins that nobody has.
std::int64_t RateLimiter::find_locked(std::int64_t cost, std::int64_t now) {
  std::erase_if(given_up_, [now](const Interval& gap) { return gap.end <= now; });
  for (Interval& gap : given_up_) {
    gap.begin = std::max(gap.begin, now);
    if (gap.end - gap.begin >= cost) return gap.begin;
  }
  return std::max(full_at_, now);
}

// What find_locked() has found.
void RateLimiter::reserve_locked(std::int64_t begin, std::int64_t cost) {
  for (auto gap = given_up_.begin(); gap != given_up_.end(); ++gap) {
    if (gap->begin != begin) continue;
    gap->begin += cost;
    if (gap->begin == gap->end) given_up_.erase(gap);
    return;
  }
  full_at_ = begin + cost;
}

// Without memory it is nobody's: that is not more than the limit.
void RateLimiter::give_up_locked(Interval interval) noexcept try {
  auto next = std::find_if(given_up_.begin(), given_up_.end(),
                           [&](const Interval& gap) { return gap.begin >= interval.end; });
  if (next != given_up_.end() && next->begin == interval.end) {
    next->begin = interval.begin;
  } else {
    next = given_up_.insert(next, interval);
  }
  if (next != given_up_.begin() && std::prev(next)->end == next->begin) {
    std::prev(next)->end = next->end;
    next = std::prev(given_up_.erase(next));
  }
  if (next->end == full_at_) {
    full_at_ = next->begin;
    given_up_.erase(next);
  }
} catch (const std::bad_alloc&) {
}

bool RateLimiter::allow(std::int64_t tokens) {
  if (tokens < 1) return true;
  if (tokens > burst_) return false;
  const std::int64_t cost = cost_of(tokens);
  std::lock_guard hold(mutex_);
  std::int64_t now = ticks_now();
  std::int64_t begin = find_locked(cost, now);
  if (begin + cost - now > cost_of(burst_)) return false;
  reserve_locked(begin, cost);
  return true;
}

bool RateLimiter::wait(const Context& context, std::int64_t tokens) {
  auto deadline = context.deadline();
  return wait_within(context, deadline ? detail::deadline_at(*deadline) : detail::kNoDeadline,
                     tokens);
}

bool RateLimiter::wait_within(const Context& context, detail::DeadlineNs deadline,
                              std::int64_t tokens) {
  if (tokens > burst_) {
    throw std::invalid_argument("magpie: RateLimiter::wait for " + std::to_string(tokens) +
                                " tokens: its burst is " + std::to_string(burst_));
  }
  if (context.cancelled()) return false;
  if (tokens < 1) return true;
  const std::int64_t cost = cost_of(tokens);
  auto over = on_done(context);  // may throw: before anything is taken
  std::int64_t begin, turn;
  bool has_turn;
  {
    std::lock_guard hold(mutex_);
    std::int64_t now = ticks_now();
    begin = find_locked(cost, now);
    turn = begin + cost - cost_of(burst_);
    bool is_too_late = deadline != detail::kNoDeadline && turn > deadline / tick_ns_;
    if (turn > now && is_too_late) return false;
    has_turn = begin + cost <= kLast;
    if (has_turn) reserve_locked(begin, cost);
    if (turn <= now) return true;
  }
  if (!has_turn) {
    select(over);
    return false;
  }
  // As a floating-point number: it may be more than can be counted.
  using Nanoseconds = std::chrono::duration<double, std::nano>;
  Nanoseconds time(static_cast<double>(turn - ticks_now()) * static_cast<double>(tick_ns_));
  std::size_t ended = select(on_timeout(time, [] {}), over);
  if (ended == 0) return true;
  std::lock_guard hold(mutex_);
  give_up_locked({begin, begin + cost});
  return false;
}

}  // namespace magpie
