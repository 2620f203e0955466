// cond_var.h: waits until another says that something has changed.
#pragma once

#include <magpie/detail/cxx20.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <stop_token>
#include <system_error>
#include <type_traits>
#include <utility>

#include <magpie/detail/deadline.h>
#include <magpie/detail/wait_storage.h>
#include <magpie/detail/with_context.h>

namespace magpie {

// As std::condition_variable_any: works with anything that has lock() and unlock(), such as
// std::unique_lock<Mutex>, Mutex, RWMutex, or std::shared_lock<RWMutex>. There are no wake-ups without a cause.
// Whoever waits counts from before its lock is released, and they are notified in the order they came. One that is
// notified when its time is up has either been notified, or not and leaves it to the next.
// May be destroyed as soon as all who wait have been notified; they need not have returned.
class CondVar {
 public:
  constexpr CondVar() = default;
  ~CondVar();
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  // Wakes the one that has waited longest, or all who wait. Never blocks. The caller need not hold the lock.
  void notify_one() noexcept;
  void notify_all() noexcept;

  // Unlocks the lock, blocks until notified, locks it again. Throws what unlock() throws; if lock() throws the program
  // is terminated.
  template <class Lock>
  void wait(Lock& lock) {
    (void)wait_until_ns(lock, detail::kNoDeadline);
  }

  // The same until `predicate()`, asked under the lock, is true.
  template <class Lock, class Predicate>
  void wait(Lock& lock, Predicate predicate) {
    while (!predicate()) wait(lock);
  }

  // As wait(), but not longer than so. When a clock that can be set was set back meanwhile, wait_until() may return
  // no_timeout without a notification.
  template <class Lock, class Clock, class Duration>
  std::cv_status wait_until(Lock& lock, std::chrono::time_point<Clock, Duration> time) {
    std::cv_status status = wait_until_ns(lock, detail::deadline_at(time));
    if constexpr (!std::is_same_v<Clock, std::chrono::steady_clock>) {
      if (status == std::cv_status::timeout && Clock::now() < time)
        return std::cv_status::no_timeout;
    }
    return status;
  }
  template <class Lock, class Rep, class Period>
  std::cv_status wait_for(Lock& lock, std::chrono::duration<Rep, Period> duration) {
    return wait_until_ns(lock, detail::deadline_after(duration));
  }

  // The same until `predicate()` is true. Returns what it says in the end.
  template <class Lock, class Clock, class Duration, class Predicate>
  bool wait_until(Lock& lock, std::chrono::time_point<Clock, Duration> time, Predicate predicate) {
    while (!predicate()) {
      if (wait_until(lock, time) == std::cv_status::timeout) return predicate();
    }
    return true;
  }
  template <class Lock, class Rep, class Period, class Predicate>
  bool wait_for(Lock& lock, std::chrono::duration<Rep, Period> duration, Predicate predicate) {
    return wait_for_predicate(lock, detail::deadline_after(duration), predicate);
  }

  // Until `predicate()` is true or a stop is requested. Returns what the predicate says in the end.
  template <class Lock, class Predicate>
  bool wait(Lock& lock, std::stop_token stop, Predicate predicate) {
    return wait_unless_stopped(stop, predicate, [this, &lock, &stop] {
      (void)wait_until_ns(lock, detail::kNoDeadline, &stop);
      return true;
    });
  }

  // The same, but not longer than so.
  template <class Lock, class Clock, class Duration, class Predicate>
  bool wait_until(Lock& lock, std::stop_token stop, std::chrono::time_point<Clock, Duration> time,
                  Predicate predicate) {
    return wait_unless_stopped(stop, predicate, [this, &lock, &stop, time] {
      return wait_until_ns(lock, detail::deadline_at(time), &stop) == std::cv_status::no_timeout ||
             Clock::now() < time;
    });
  }
  template <class Lock, class Rep, class Period, class Predicate>
  bool wait_for(Lock& lock, std::stop_token stop, std::chrono::duration<Rep, Period> duration,
                Predicate predicate) {
    detail::DeadlineNs deadline = detail::deadline_after(duration);
    return wait_unless_stopped(stop, predicate, [this, &lock, &stop, deadline] {
      return wait_until_ns(lock, deadline, &stop) == std::cv_status::no_timeout;
    });
  }

  // As wait(), but no longer than until the context is over (context.h): then it throws, or returns
  // false. Also then it holds the lock again, for which it may have to wait. Without a
  // notification: none is lost, the next in line has it.
  template <class Lock>
  void wait(Lock& lock, const Context& context) {
    std::error_code error;
    if (!wait(lock, context, error)) detail::throw_over(error, "CondVar::wait");
  }
  template <class Lock>
  bool wait(Lock& lock, const Context& context, std::error_code& error) {
    return detail::wait_with(context, error, [&](sched::CancelSource* source) {
      return wait_with(user_lock(lock), source);
    });
  }

  // The same until `predicate()`, asked under the lock, is true; asked once more when the context
  // is over meanwhile.
  template <class Lock, class Predicate>
  void wait(Lock& lock, const Context& context, Predicate predicate) {
    std::error_code error;
    if (!wait(lock, context, predicate, error)) detail::throw_over(error, "CondVar::wait");
  }
  template <class Lock, class Predicate>
  bool wait(Lock& lock, const Context& context, Predicate predicate, std::error_code& error) {
    return detail::wait_with(context, error, [&](sched::CancelSource* source) {
      while (!predicate()) {
        if (!wait_with(user_lock(lock), source)) return static_cast<bool>(predicate());
      }
      return true;
    });
  }

 private:
  // The caller's lock, whatever it is.
  struct UserLock {
    void* lock;
    void (*do_lock)(void*);
    void (*do_unlock)(void*);
  };

  template <class Lock>
  static UserLock user_lock(Lock& lock) {
    return {&lock, [](void* its) { static_cast<Lock*>(its)->lock(); },
            [](void* its) { static_cast<Lock*>(its)->unlock(); }};
  }

  template <class Lock>
  std::cv_status wait_until_ns(Lock& lock, detail::DeadlineNs deadline,
                               const std::stop_token* stop = nullptr) {
    return wait_erased(user_lock(lock), deadline, stop) ? std::cv_status::no_timeout
                                                        : std::cv_status::timeout;
  }

  template <class Lock, class Predicate>
  bool wait_for_predicate(Lock& lock, detail::DeadlineNs deadline, Predicate& predicate) {
    while (!predicate()) {
      if (wait_until_ns(lock, deadline) == std::cv_status::timeout) return predicate();
    }
    return true;
  }

  // `wait_once()` says false when time is up.
  template <class Predicate, class Wait>
  bool wait_unless_stopped(std::stop_token& stop, Predicate& predicate, Wait wait_once) {
    std::stop_callback notify(stop, [this] { notify_all_for_stop(); });
    while (!stop.stop_requested()) {
      if (predicate()) return true;
      if (!wait_once()) break;
    }
    return predicate();
  }

  // False: time was up. Does not wait if a stop has been requested.
  bool wait_erased(UserLock user, detail::DeadlineNs deadline, const std::stop_token* stop);
  // False: the context was over.
  bool wait_with(UserLock user, sched::CancelSource* source);
  template <class Until>
  bool unlock_and_wait(UserLock user, Until until, const std::stop_token* stop);
  void notify_all_for_stop() noexcept;

  // What happens in it: src/sync/cond_var.cc.
  std::atomic<std::uint32_t> lock_{0};  // atomic [lock]
  detail::WaitStorage waiters_;
};

}  // namespace magpie
