// task_group.h: structured concurrency: goroutines that are waited for, and cancelled, together.
#pragma once

#include <magpie/detail/cxx20.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include <magpie/context.h>
#include <magpie/detail/api.h>
#include <magpie/detail/callable.h>
#include <magpie/detail/caught.h>
#include <magpie/detail/deadline.h>
#include <magpie/go.h>
#include <magpie/sync.h>

namespace magpie {

namespace detail {
// Called as f() or as f(context), once.
template <class F>
concept GroupTask =
    std::is_invocable_v<std::decay_t<F>> || std::is_invocable_v<std::decay_t<F>, Context>;
}  // namespace detail

// Starts goroutines and waits for all of them. The first exception of one cancels the others
// through context(), and wait() throws it. The owner of the group calls wait(); goroutines of the
// group may call go() too.
class MAGPIE_API TaskGroup {
 public:
  // The context of the group is cancelled with `parent`. Throws std::bad_alloc.
  explicit TaskGroup(const Context& parent = Context::background());
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Cancels the context and blocks until the goroutines have ended; an exception that wait() has
  // not thrown is lost. After the end of run() there are none to wait for: run() has dropped them.
  ~TaskGroup();

  // Starts f(), or f(context), in a goroutine. Blocks while as many run as set_limit() allows.
  // Throws as magpie::go.
  template <detail::GroupTask F>
  void go(F&& f) {
    detail::check_not_empty(f);
    take_slot();
    start(std::forward<F>(f));
  }

  // As go(), without waiting. False: as many run as set_limit() allows, and f is not called.
  template <detail::GroupTask F>
  bool try_go(F&& f) {
    detail::check_not_empty(f);
    if (!try_take_slot()) return false;
    start(std::forward<F>(f));
    return true;
  }

  // As go(), until time is up. False: time was up, and f is not called. Any clock will do.
  template <class Rep, class Period, detail::GroupTask F>
  bool try_go_for(std::chrono::duration<Rep, Period> duration, F&& f) {
    detail::check_not_empty(f);
    if (!take_slot_until(detail::deadline_after(duration))) return false;
    start(std::forward<F>(f));
    return true;
  }
  template <class Clock, class Duration, detail::GroupTask F>
  bool try_go_until(std::chrono::time_point<Clock, Duration> time, F&& f) {
    detail::check_not_empty(f);
    bool taken = detail::wait_until(
        time, [this](detail::DeadlineNs deadline) { return take_slot_until(deadline); });
    if (taken) start(std::forward<F>(f));
    return taken;
  }

  // As go(), until the context is over (context.h): then it throws std::system_error; with `error`,
  // it returns false; f is not called. That context limits only the waiting; f gets the group's.
  template <detail::GroupTask F>
  void go(const Context& context, F&& f) {
    detail::check_not_empty(f);
    std::error_code error;
    if (!take_slot(context, error)) detail::throw_over(error, "TaskGroup::go");
    start(std::forward<F>(f));
  }
  template <detail::GroupTask F>
  bool go(const Context& context, F&& f, std::error_code& error) {
    detail::check_not_empty(f);
    if (!take_slot(context, error)) return false;
    start(std::forward<F>(f));
    return true;
  }

  // Blocks until all goroutines of the group have ended and their captures are destroyed. Then
  // cancels the context and throws the first exception of any of them. The group may be used again,
  // with a new context. Throws std::logic_error if run() has dropped some of the goroutines.
  void wait();

  // As wait(), until the context is over (context.h): then it throws std::system_error; with
  // `error`, it returns false. The goroutines go on, nothing is cancelled, and the group has yet to
  // be waited for.
  void wait(const Context& context);
  bool wait(const Context& context, std::error_code& error);

  // As wait(), until time is up. False: the group has yet to be waited for.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> duration) {
    return wait_within({.deadline = detail::deadline_after(duration)});
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool wait_until(std::chrono::time_point<Clock, Duration> time) {
    return detail::wait_until(
        time, [this](detail::DeadlineNs deadline) { return wait_within({.deadline = deadline}); });
  }

  // Limits the goroutines that run at a time to n from now on; n < 1 means no limit. Throws
  // std::logic_error while goroutines of the group run.
  void set_limit(std::int64_t n);

  // The context of the group's goroutines; cancel it to cancel them. It is also cancelled when a
  // goroutine throws (cause() is then the exception), by wait(), and with the parent.
  Context context() const;

 private:
  template <class F>
  void start(F&& f) {
    WaitGroup::Starting count(running_);
    try {
      if constexpr (std::is_invocable_v<std::decay_t<F>, Context>) {
        start_call([call = std::forward<F>(f), context = context()]() mutable {
          (void)std::move(call)(context);
        });
      } else {
        start_call(std::forward<F>(f));
      }
    } catch (...) {
      end_one();
      throw;
    }
  }

  template <class F>
  void start_call(F&& f) {
    using Call = std::optional<std::decay_t<F>>;
    magpie::go([this, call = Call(std::in_place, std::forward<F>(f))]() mutable {
      try {
        (void)std::move (*call)();
      } catch (...) {
        note_failure(detail::caught());
      }
      call.reset();  // what it captured ends before wait() returns
      end_one();
    });
  }

  enum class Waited { all_ended, some_dropped, limit_reached };
  Waited wait_for_all(const detail::WaitLimit& limit = {});
  // False: the limit was reached. Throws what wait() throws.
  bool wait_within(const detail::WaitLimit& limit);
  void report(Waited waited);
  void forget_dropped();

  void take_slot();
  bool take_slot(const Context& context, std::error_code& error);
  bool take_slot_until(detail::DeadlineNs deadline);
  bool try_take_slot();
  void end_one();
  void note_failure(std::exception_ptr error);

  const Context parent_;
  WaitGroup running_;
  std::unique_ptr<Semaphore> slots_;     // null: no limit
  std::atomic<std::int64_t> active_{0};  // atomic, a count: of slots that are taken

  mutable Mutex mutex_;
  // guarded by mutex_
  Context context_;
  std::exception_ptr first_error_;
};

}  // namespace magpie
