// rate_limiter.cc: tokens are stretches of time.
//
//   A token is a stretch of 1 / rate on the time axis. A caller that takes n tokens gets a stretch
//   of n of them, which begins now or later and overlaps with no other caller's. The caller's turn
//   comes `burst / rate` before the end of its stretch, which may be past already. Usually that is
//   the stretch behind all others, from full_at_ns_ on. So nobody has to refill anything, and
//   waiting callers have their turns reserved in the order in which they came. A caller that gives
//   up leaves a gap, and the next caller that fits into it gets it: no other turn changes.
//
// Limit  Take the callers whose turn came between t1 and t2. Each of their stretches begins after
//        t1: a stretch whose owner did not wait begins after now, any other at most `burst` before
//        its end, which is `burst` after its turn. And each ends before t2 + burst / rate. As they
//        do not overlap, they hold at most burst + rate * (t2 - t1) tokens.
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

}  // namespace

RateLimiter::RateLimiter(double rate, std::int64_t burst)
    : ns_per_token_(1e9 / checked_rate(rate)), burst_(checked_burst(burst)), full_at_ns_(0) {}

std::int64_t RateLimiter::cost_ns(std::int64_t tokens) const {
  constexpr double kMost = 1e18;  // thirty years
  return static_cast<std::int64_t>(std::min(ns_per_token_ * static_cast<double>(tokens), kMost));
}

// Where the first stretch of that length begins that nobody has.
std::int64_t RateLimiter::find_locked(std::int64_t cost, std::int64_t now) {
  std::erase_if(given_up_, [now](const Stretch& gap) { return gap.end_ns <= now; });
  for (Stretch& gap : given_up_) {
    gap.begin_ns = std::max(gap.begin_ns, now);
    if (gap.end_ns - gap.begin_ns >= cost) return gap.begin_ns;
  }
  return std::max(full_at_ns_, now);
}

// What find_locked() has found.
void RateLimiter::reserve_locked(std::int64_t begin, std::int64_t cost) {
  for (auto gap = given_up_.begin(); gap != given_up_.end(); ++gap) {
    if (gap->begin_ns != begin) continue;
    gap->begin_ns += cost;
    if (gap->begin_ns == gap->end_ns) given_up_.erase(gap);
    return;
  }
  full_at_ns_ = begin + cost;
}

// Without memory it is nobody's: that is not more than the limit.
void RateLimiter::give_up_locked(Stretch stretch) noexcept try {
  auto next = std::find_if(given_up_.begin(), given_up_.end(),
                           [&](const Stretch& gap) { return gap.begin_ns >= stretch.end_ns; });
  if (next != given_up_.end() && next->begin_ns == stretch.end_ns) {
    next->begin_ns = stretch.begin_ns;
  } else {
    next = given_up_.insert(next, stretch);
  }
  if (next != given_up_.begin() && std::prev(next)->end_ns == next->begin_ns) {
    std::prev(next)->end_ns = next->end_ns;
    next = std::prev(given_up_.erase(next));
  }
  if (next->end_ns == full_at_ns_) {
    full_at_ns_ = next->begin_ns;
    given_up_.erase(next);
  }
} catch (const std::bad_alloc&) {
}

bool RateLimiter::allow(std::int64_t tokens) {
  if (tokens < 1) return true;
  if (tokens > burst_) return false;
  const std::int64_t cost = cost_ns(tokens);
  std::lock_guard hold(mutex_);
  std::int64_t now = detail::steady_now_ns();
  std::int64_t begin = find_locked(cost, now);
  if (begin + cost - now > cost_ns(burst_)) return false;
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
  const std::int64_t cost = cost_ns(tokens);
  auto over = on_done(context);  // may throw: before anything is taken
  std::int64_t begin, turn;
  {
    std::lock_guard hold(mutex_);
    std::int64_t now = detail::steady_now_ns();
    begin = find_locked(cost, now);
    turn = begin + cost - cost_ns(burst_);
    if (turn > now && turn > deadline) return false;
    reserve_locked(begin, cost);
    if (turn <= now) return true;
  }
  std::size_t ended =
      select(on_timeout(std::chrono::nanoseconds(turn - detail::steady_now_ns()), [] {}), over);
  if (ended == 0) return true;
  std::lock_guard hold(mutex_);
  give_up_locked({begin, begin + cost});
  return false;
}

}  // namespace magpie
