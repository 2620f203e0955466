// time.h: goroutines and time. Takes durations of any kind and time points of any clock.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <utility>

#include <magpie/chan.h>
#include <magpie/detail/api.h>
#include <magpie/detail/callable.h>
#include <magpie/detail/deadline.h>
#include <magpie/detail/with_context.h>

namespace magpie {

using TimePoint = std::chrono::steady_clock::time_point;

class Timer;

namespace detail {
MAGPIE_API void sleep_until(DeadlineNs deadline);
// False: the context ended first.
MAGPIE_API bool sleep_with(DeadlineNs deadline, const Context& context, std::error_code& error);
}  // namespace detail

// Blocks the calling goroutine or thread for at least that long. Zero or less: returns at once. A
// duration that is too long to count never ends. Does not throw.
template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> duration) {
  if (duration <= duration.zero()) return;
  detail::sleep_until(detail::deadline_after(duration));
}

// Blocks the calling goroutine or thread until the time has come. A past time: returns at once.
// Does not throw.
template <class Clock, class Duration>
void sleep_until(std::chrono::time_point<Clock, Duration> time) {
  detail::wait_until(time, [](detail::DeadlineNs deadline) {
    if (deadline > detail::steady_now_ns()) detail::sleep_until(deadline);
    return false;
  });
}

// As above, until the context is over (context.h): then they throw std::system_error; with `error`,
// they return false.
template <class Rep, class Period>
bool sleep_for(std::chrono::duration<Rep, Period> duration, const Context& context,
               std::error_code& error) {
  return detail::sleep_with(detail::deadline_after(duration), context, error);
}
template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> duration, const Context& context) {
  std::error_code error;
  if (!sleep_for(duration, context, error)) detail::throw_over(error, "sleep_for");
}
template <class Clock, class Duration>
bool sleep_until(std::chrono::time_point<Clock, Duration> time, const Context& context,
                 std::error_code& error) {
  detail::wait_until(time, [&](detail::DeadlineNs deadline) {
    return !detail::sleep_with(deadline, context, error);
  });
  return !error;
}
template <class Clock, class Duration>
void sleep_until(std::chrono::time_point<Clock, Duration> time, const Context& context) {
  std::error_code error;
  if (!sleep_until(time, context, error)) detail::throw_over(error, "sleep_until");
}

namespace detail {

// A function that a timer calls in a new goroutine. Shared, since the timer may call it again.
struct TimerCall {
  std::shared_ptr<void> object = nullptr;
  void (*call)(void*) = nullptr;
};

struct TimerState;  // src/time/timer_state.h

// A handle that shares a timer.
class MAGPIE_API TimerHandle {
 public:
  // Throws std::logic_error when no runtime runs, std::bad_alloc.
  TimerHandle(DeadlineNs first, std::int64_t period_ns, TimerCall call);
  TimerHandle(const TimerHandle& other) noexcept;
  TimerHandle(TimerHandle&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  TimerHandle& operator=(TimerHandle other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~TimerHandle();

  Chan<TimePoint> channel() const;
  bool stop() const;
  bool reset(DeadlineNs first, std::int64_t period_ns) const;

 private:
  TimerState* state_;  // null: moved from
};

Timer make_call_timer(DeadlineNs first, TimerCall call);

template <class Rep, class Period>
std::int64_t checked_period(std::chrono::duration<Rep, Period> period) {
  std::int64_t ns = whole_ns(period);
  if (ns == 0) throw std::invalid_argument("magpie: a Ticker's period must be positive");
  return ns;
}

}  // namespace detail

// Sends the time on its channel once, after a while, or calls a function (after_func). A handle:
// copies name the same timer. A timer goes on to fire after its last handle is gone. A handle that
// was moved from names none: its channel is the nil channel, stop() does nothing, and reset()
// throws std::logic_error.
class Timer {
 public:
  // Starts the timer. Zero or less: it fires at once. Throws std::logic_error if no runtime runs,
  // std::bad_alloc.
  template <class Rep, class Period>
  explicit Timer(std::chrono::duration<Rep, Period> duration)
      : handle_(detail::deadline_after(duration), 0, {}) {}

  // Receives the time at which the timer fired. It has room for one value, so firing never blocks.
  // For a timer of after_func it is the nil channel. Throws std::bad_alloc.
  Chan<TimePoint> channel() const { return handle_.channel(); }

  // Keeps the timer from firing. True: it had neither fired nor been stopped, or nobody had
  // received its value. False: too late. After that no value is received from the channel. Does not
  // wait for a function that already runs. Never blocks.
  bool stop() const { return handle_.stop(); }

  // As stop(), and starts the timer again. Throws std::logic_error if no runtime runs.
  template <class Rep, class Period>
  bool reset(std::chrono::duration<Rep, Period> duration) const {
    return handle_.reset(detail::deadline_after(duration), 0);
  }

 private:
  friend Timer detail::make_call_timer(detail::DeadlineNs first, detail::TimerCall call);
  explicit Timer(detail::TimerHandle handle) : handle_(std::move(handle)) {}

  detail::TimerHandle handle_;
};

inline Timer detail::make_call_timer(DeadlineNs first, TimerCall call) {
  return Timer(TimerHandle(first, 0, std::move(call)));
}

// A channel that receives the time once, after the duration. Throws std::logic_error if no runtime
// runs, std::bad_alloc.
template <class Rep, class Period>
Chan<TimePoint> after(std::chrono::duration<Rep, Period> duration) {
  return Timer(duration).channel();
}

// Calls f in a new goroutine after the duration, and again after each reset() of the timer that it
// returns; these calls may overlap. Throws std::logic_error if no runtime runs,
// std::invalid_argument if f is an empty std::function or a null pointer, std::bad_alloc.
template <class Rep, class Period, detail::Callable F>
Timer after_func(std::chrono::duration<Rep, Period> duration, F&& f) {
  using Call = std::decay_t<F>;
  detail::check_not_empty(f);
  return detail::make_call_timer(detail::deadline_after(duration),
                                 {std::make_shared<Call>(std::forward<F>(f)),
                                  [](void* object) { (*static_cast<Call*>(object))(); }});
}

// Sends the time on its channel at regular intervals. A tick that comes before the last one was
// received is left out: at most one waits in the channel. A handle: copies name the same ticker,
// and it stops when the last one is gone. One that was moved from is as that of a Timer.
class Ticker {
 public:
  // Starts the ticker. Throws std::invalid_argument unless the period is positive, std::logic_error
  // if no runtime runs, std::bad_alloc.
  template <class Rep, class Period>
  explicit Ticker(std::chrono::duration<Rep, Period> period)
      : handle_(detail::deadline_after(period), detail::checked_period(period), {}) {}

  // Receives the time of each tick. stop() does not close it. Throws std::bad_alloc.
  Chan<TimePoint> channel() const { return handle_.channel(); }

  // Ends the ticks; none is received after it. Never blocks.
  void stop() const { handle_.stop(); }

  // Starts again with this period; no earlier tick is received after it. Throws as the constructor.
  template <class Rep, class Period>
  void reset(std::chrono::duration<Rep, Period> period) const {
    handle_.reset(detail::deadline_after(period), detail::checked_period(period));
  }

 private:
  detail::TimerHandle handle_;
};

}  // namespace magpie
