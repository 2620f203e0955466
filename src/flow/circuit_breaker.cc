#include <magpie/circuit_breaker.h>

#include <mutex>
#include <stdexcept>
#include <utility>

#include <magpie/detail/deadline.h>
#include <magpie/runtime.h>

#include "sched/current.h"
#include "sched/presence.h"
#include "sched/run_end.h"

namespace magpie {
namespace {

bool in_goroutine() { return sched::current_m() != nullptr; }

CircuitBreaker::Options checked(const CircuitBreaker::Options& options) {
  if (options.failures < 1 || options.trials < 1 || options.open_for.count() < 0) {
    throw std::invalid_argument(
        "magpie: CircuitBreaker: failures and trials must be at least 1, open_for not negative");
  }
  return options;
}

}  // namespace

CircuitBreaker::CircuitBreaker(const Options& options) : options_(checked(options)) {}

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
  begin_epoch_locked();
  open_until_ns_ = detail::deadline_after(options_.open_for);
  failures_in_a_row_ = 0;
  trials_under_way_ = {};
  trials_succeeded_ = 0;
}

// Of calls that began in an earlier epoch, nothing is learnt any more.
void CircuitBreaker::begin_epoch_locked() {
  ++epoch_;
  late_.add(std::exchange(under_way_, {}));
}

// A goroutine that is dropped when its run() ends never says what became of its call.
void CircuitBreaker::forget_dropped_locked() {
  if (sched::is_over(run_)) {
    for (Calls* calls : {&trials_under_way_, &under_way_, &late_}) calls->forget_run();
  }
  if (in_goroutine()) run_ = sched::current_run();  // all before it are over
}

bool CircuitBreaker::allow_locked() {
  forget_dropped_locked();
  switch (state_locked(detail::steady_now_ns())) {
    case State::closed:
      return true;
    case State::open:
      return false;
    case State::half_open:
      if (trials_under_way_.all + trials_succeeded_ >= options_.trials) return false;
      trials_under_way_.begin(in_goroutine());
      return true;
  }
  return false;
}

bool CircuitBreaker::allow() {
  std::lock_guard hold(mutex_);
  bool allowed = allow_locked();
  if (allowed) under_way_.begin(in_goroutine());
  return allowed;
}

// The result of a call of this epoch.
void CircuitBreaker::learn_locked(Result result) {
  if (result == Result::failure) {
    if (closed_ ? ++failures_in_a_row_ == options_.failures : trials_under_way_.all > 0)
      open_locked();
  } else if (closed_) {
    failures_in_a_row_ = 0;
  } else if (trials_under_way_.all > 0) {
    trials_under_way_.end(in_goroutine());
    if (++trials_succeeded_ < options_.trials) return;
    closed_ = true;
    begin_epoch_locked();
  }
}

// The calls have no names, so the earliest is taken to end first.
void CircuitBreaker::record(Result result) {
  std::lock_guard hold(mutex_);
  forget_dropped_locked();
  if (late_.all > 0) return late_.end(in_goroutine());
  if (under_way_.all > 0) under_way_.end(in_goroutine());
  learn_locked(result);
}

void CircuitBreaker::record_success() { record(Result::success); }
void CircuitBreaker::record_failure() { record(Result::failure); }

CircuitBreaker::Pass::Pass(CircuitBreaker& breaker) : breaker_(breaker) {
  std::lock_guard hold(breaker.mutex_);
  if (!breaker.allow_locked())
    throw CircuitOpen("magpie: the circuit is open: too many calls have failed");
  epoch_ = breaker.epoch_;
}

CircuitBreaker::Pass::~Pass() {
  std::lock_guard hold(breaker_.mutex_);
  if (epoch_ == breaker_.epoch_) breaker_.learn_locked(result_);
}

}  // namespace magpie
