// wait_group.h: waits until a number of things are done.
#pragma once

#include <magpie/detail/cxx20.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include <magpie/detail/api.h>
#include <magpie/detail/callable.h>
#include <magpie/detail/deadline.h>
#include <magpie/detail/wait_storage.h>
#include <magpie/detail/with_context.h>
#include <magpie/go.h>

namespace magpie {

namespace detail {
class Completing;  // src/flow/context.cc
}

// A count that starts at zero. wait() blocks while it is above zero.
class MAGPIE_API WaitGroup {
 public:
  constexpr WaitGroup() = default;
  WaitGroup(const WaitGroup&) = delete;
  WaitGroup& operator=(const WaitGroup&) = delete;

  // Adds n, which may be negative, to the count. When the count becomes zero, wakes the waiters;
  // what the caller did before add() happens before their wait() returns. Never blocks. Throws
  // std::logic_error if the count would fall below zero or pass 2^31 - 1; then no other goroutine
  // ever sees that count.
  void add(std::int64_t n);

  // As add(-1).
  void done() { add(-1); }

  // Blocks until the count is zero. After it has returned, the caller may use the group again at
  // once, even while other waiters have yet to return. After all have returned, the group may be
  // destroyed.
  //
  // A goroutine that run() drops when it ends is never done. A wait() for such goroutines of go()
  // prints that to stderr and goes on waiting, since others may be counted too.
  void wait();

  // As wait(), until the context is over (context.h): then it throws std::system_error; with
  // `error`, it returns false. The count is unchanged and may be waited for again.
  void wait(const Context& context) {
    std::error_code error;
    if (!wait(context, error)) detail::throw_over(error, "WaitGroup::wait");
  }
  bool wait(const Context& context, std::error_code& error) {
    return detail::wait_with(context, error, [this](sched::CancelSource* source) {
      return wait_within({.source = source});
    });
  }

  // As wait(), until time is up. False: the count is not zero. Any clock will do.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> duration) {
    return wait_within({.deadline = detail::deadline_after(duration)});
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool wait_until(std::chrono::time_point<Clock, Duration> time) {
    return detail::wait_until(
        time, [this](detail::DeadlineNs deadline) { return wait_within({.deadline = deadline}); });
  }

  // Starts a goroutine that calls f. The group counts it until f has returned or thrown and the
  // captures of f are destroyed. Throws what magpie::go() throws.
  template <class F>
  void go(F&& f) {
    detail::check_not_empty(f);
    Starting count(*this);
    try {
      using Call = std::optional<std::decay_t<F>>;
      magpie::go([this, call = Call(std::in_place, std::forward<F>(f))]() mutable {
        try {
          std::move (*call)();
        } catch (...) {
          call.reset();
          done();
          throw;
        }
        call.reset();  // what it captured ends before wait() returns
        done();
      });
    } catch (...) {
      done();
      throw;
    }
  }

 private:
  friend class TaskGroup;
  friend class WorkerPool;
  friend class detail::Completing;
  struct Insides;

  // Counts a goroutine that is being started. While this object lives, the current run() does not
  // end.
  class Starting {
   public:
    explicit Starting(WaitGroup& group);
    ~Starting();
    Starting(const Starting&) = delete;
    Starting& operator=(const Starting&) = delete;

   private:
    bool keeps_run_;
  };

  bool add_and_wake(std::int64_t n);
  // False: the limit was reached.
  bool wait_within(const detail::WaitLimit& limit);
  void forget_run();

  // For a group that counts only goroutines started through Starting. dropped: some were dropped
  // when their run() ended; the count is not zero.
  enum class Waited { zero, dropped, limit_reached };
  [[nodiscard]] Waited wait_unless_dropped(const detail::WaitLimit& limit = {});
  bool counts_dropped() const;
  // Sets the count to zero if counts_dropped(). One caller at a time.
  void forget_dropped();

  // [wait-group]: src/sync/wait_group_core.h.
  std::atomic<std::uint64_t> state_{0};  // atomic [wait-group]
  std::atomic<std::uint32_t> lock_{0};   // atomic [lock]
  detail::WaitStorage waiters_;
  // atomic, a hint: the last run() in which a goroutine was started; 0: none since a wait()
  std::atomic<std::uint64_t> run_{0};
};

}  // namespace magpie
