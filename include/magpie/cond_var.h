// cond_var.h: waits until another goroutine says that something has changed.
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

#include <magpie/detail/api.h>
#include <magpie/detail/deadline.h>
#include <magpie/detail/wait_storage.h>
#include <magpie/detail/with_context.h>

namespace magpie {

// A condition variable for locks of any kind, as std::condition_variable_any:
// std::unique_lock<Mutex>, Mutex, RWMutex, std::shared_lock<RWMutex>, or anything else with lock()
// and unlock().
//
// A wait counts from before its lock is released. Waiters are notified in the order in which they
// came, and there are no spurious wake-ups. If a notification and a timeout race, one of them wins:
// the waiter returns no_timeout, or the notification goes to the next waiter.
//
// May be destroyed as soon as all waiters have been notified; their calls need not have returned.
class MAGPIE_API CondVar {
 public:
  constexpr CondVar() = default;
  ~CondVar();
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  // notify_one() wakes the waiter that has waited longest, notify_all() wakes all. Never block. The
  // caller need not hold the lock.
  void notify_one() noexcept;
  void notify_all() noexcept;

  // Unlocks the lock, blocks until notified, and locks it again. Throws what unlock() throws. If
  // lock() throws, the program is terminated.
  template <class Lock>
  void wait(Lock& lock) {
    (void)wait_until_ns(lock, detail::kNoDeadline);
  }

  // Waits until `predicate()` is true. The predicate is called with the lock held.
  template <class Lock, class Predicate>
  void wait(Lock& lock, Predicate predicate) {
    while (!predicate()) wait(lock);
  }

  // As wait(), until time is up. Returns whether it was. If a clock that can be set was set back
  // meanwhile, wait_until() may return no_timeout without a notification.
  template <class Lock, class Clock, class Duration>
  std::cv_status wait_until(Lock& lock, std::chrono::time_point<Clock, Duration> time) {
    std::cv_status status = wait_until_ns(lock, detail::deadline_at(time));
    if constexpr (!std::is_same_v<Clock, std::chrono::steady_clock>) {
      if (status == std::cv_status::timeout && detail::is_to_come(time))
        return std::cv_status::no_timeout;
    }
    return status;
  }
  template <class Lock, class Rep, class Period>
  std::cv_status wait_for(Lock& lock, std::chrono::duration<Rep, Period> duration) {
    return wait_until_ns(lock, detail::deadline_after(duration));
  }

  // Waits until `predicate()` is true or time is up. Returns what the predicate says then.
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

  // Waits until `predicate()` is true or a stop is requested. Returns what the predicate says then.
  // The stop wakes only the waiters that wait with its token.
  template <class Lock, class Predicate>
  bool wait(Lock& lock, std::stop_token stop, Predicate predicate) {
    return wait_unless_stopped(stop, predicate, [this, &lock, &stop] {
      (void)wait_until_ns(lock, detail::kNoDeadline, &stop);
      return true;
    });
  }

  // The same, until time is up.
  template <class Lock, class Clock, class Duration, class Predicate>
  bool wait_until(Lock& lock, std::stop_token stop, std::chrono::time_point<Clock, Duration> time,
                  Predicate predicate) {
    return wait_unless_stopped(stop, predicate, [this, &lock, &stop, time] {
      return wait_until_ns(lock, detail::deadline_at(time), &stop) == std::cv_status::no_timeout ||
             detail::is_to_come(time);
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

  // As wait(), until the context is over (context.h): then it throws std::system_error; with
  // `error`, it returns false. In both cases it has locked the lock again, for which it may have to
  // wait. A wait that ends this way has used up no notification: the next waiter gets it.
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

  // Waits until `predicate()` is true or the context is over. The predicate is called with the lock
  // held, and once more after the context has ended.
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
  // The caller's lock without its type.
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

  // `wait_once()` returns false when time is up.
  template <class Predicate, class Wait>
  bool wait_unless_stopped(std::stop_token& stop, Predicate& predicate, Wait wait_once) {
    std::stop_callback notify(stop, [this, &stop] { notify_stopped(stop); });
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
  void notify_stopped(const std::stop_token& stop) noexcept;

  // [signal]: src/sync/signal_word.h.
  std::atomic<std::uint32_t> lock_{0};  // atomic [lock]
  detail::WaitStorage waiters_;
};

}  // namespace magpie
