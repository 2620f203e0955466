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

#include <magpie/detail/deadline.h>
#include <magpie/detail/wait_storage.h>
#include <magpie/detail/with_context.h>
#include <magpie/go.h>

namespace magpie {

namespace detail {
class Settling;  // src/flow/context.cc
}

// A count, from zero on, and those who wait for it to become zero again.
class WaitGroup {
 public:
  constexpr WaitGroup() = default;
  WaitGroup(const WaitGroup&) = delete;
  WaitGroup& operator=(const WaitGroup&) = delete;

  // Adds n, which may be negative. Never blocks. Wakes the waiters when the count becomes zero. Throws
  // std::logic_error and changes nothing, as others see it too, if the count would fall below zero or pass 2^31 - 1.
  // What happened before it is seen by those whom it wakes.
  void add(std::int64_t n);

  // The same as add(-1).
  void done() { add(-1); }

  // Blocks until the count is zero; returns at once if it is. Once it has returned the group may be used again, at
  // once, also while other waiters have yet to return; once all have returned, it may be destroyed.
  // Goroutines that are dropped when run() ends are never done: who waits for some that go() has started says so on
  // stderr, and waits on, as others may be counted too.
  void wait();

  // The same, but no longer than until the context is over (context.h): then it throws, or returns
  // false. The count is what it was, and may be waited for again.
  void wait(const Context& context) {
    std::error_code error;
    if (!wait(context, error)) detail::throw_over(error, "WaitGroup::wait");
  }
  bool wait(const Context& context, std::error_code& error) {
    return detail::wait_with(context, error, [this](sched::CancelSource* source) {
      return wait_within({.source = source});
    });
  }

  // The same, but no longer than until time is up. False: the count is not zero.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> duration) {
    return wait_within({.deadline = detail::deadline_after(duration)});
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool wait_until(std::chrono::time_point<Clock, Duration> time) {
    return detail::wait_until(
        time, [this](detail::DeadlineNs deadline) { return wait_within({.deadline = deadline}); });
  }

  // Starts a goroutine that is counted until f has returned, or thrown, and what it captured is destroyed. Throws what
  // magpie::go() throws.
  template <class F>
  void go(F&& f) {
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
  friend class detail::Settling;
  struct Insides;

  // Counts a goroutine that is started while it lives; a run() that runs does not end meanwhile.
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

  // For those who count nothing but goroutines, by Starting. False: some were dropped when their run() ended; the count
  // is not zero.
  enum class Waited { zero, dropped, limit_reached };
  [[nodiscard]] Waited wait_unless_dropped(const detail::WaitLimit& limit = {});
  bool counts_dropped() const;
  // If so, by one at a time: the count is zero again.
  void forget_dropped();

  // What happens in it: src/sync/wait_group.cc.
  std::atomic<std::uint64_t> state_{0};  // atomic [wait-group]
  std::atomic<std::uint32_t> lock_{0};   // atomic [lock]
  detail::WaitStorage waiters_;
  // atomic, a hint: the last run() in which a goroutine was started; 0: none
  std::atomic<std::uint64_t> run_{0};
};

}  // namespace magpie
