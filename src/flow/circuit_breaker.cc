#include <magpie/circuit_breaker.h>

#include <mutex>
#include <stdexcept>

#include <magpie/detail/deadline.h>

namespace magpie {
namespace {

CircuitBreaker::Settings checked(const CircuitBreaker::Settings& settings) {
  if (settings.failures < 1 || settings.trials < 1 || settings.open_for.count() < 0) {
    throw std::invalid_argument(
        "magpie: CircuitBreaker: failures and trials must be at least 1, open_for not negative");
  }
  return settings;
}

}  // namespace

CircuitBreaker::CircuitBreaker(const Settings& settings) : settings_(checked(settings)) {}

CircuitBreaker::State CircuitBreaker::state_locked(std::int64_t now_ns) const {
  if (closed_) return State::closed;
  return now_ns < open_until_ns_ ? State::open : State::half_open;
}

CircuitBreaker::State CircuitBreaker::state() const {
  std::lock_guard hold(mutex_);
  return state_locked(detail::steady_now_ns());
}

void CircuitBreaker::open_locked() {
  closed_ = false;
  open_until_ns_ = detail::deadline_after(settings_.open_for);
  failures_in_a_row_ = 0;
  trials_under_way_ = 0;
  trials_succeeded_ = 0;
}

bool CircuitBreaker::allow() {
  std::lock_guard hold(mutex_);
  switch (state_locked(detail::steady_now_ns())) {
    case State::closed:
      return true;
    case State::open:
      return false;
    case State::half_open:
      if (trials_under_way_ + trials_succeeded_ >= settings_.trials) return false;
      ++trials_under_way_;
      return true;
  }
  return false;
}

// Of a call that began before it opened, nothing is learnt any more.
void CircuitBreaker::record_success() {
  std::lock_guard hold(mutex_);
  if (closed_) {
    failures_in_a_row_ = 0;
  } else if (trials_under_way_ > 0) {
    --trials_under_way_;
    if (++trials_succeeded_ == settings_.trials) closed_ = true;
  }
}

void CircuitBreaker::record_failure() {
  std::lock_guard hold(mutex_);
  if (closed_ ? ++failures_in_a_row_ == settings_.failures : trials_under_way_ > 0) open_locked();
}

CircuitBreaker::Pass::Pass(CircuitBreaker& breaker) : breaker_(breaker) {
  if (!breaker.allow())
    throw CircuitOpen("magpie: the circuit is open: too many calls have failed");
}

CircuitBreaker::Pass::~Pass() {
  if (succeeded_) {
    breaker_.record_success();
  } else {
    breaker_.record_failure();
  }
}

}  // namespace magpie
