// semaphore.h: a number of units that goroutines take and give back.
#pragma once

#include <magpie/detail/cxx20.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <system_error>

#include <magpie/detail/deadline.h>
#include <magpie/detail/wait_storage.h>
#include <magpie/detail/with_context.h>

namespace magpie {

// First come, first served: a large request is not overtaken by small ones that come later.
// May be destroyed as soon as nobody uses it, also by one who has just got what another released whose release() has not
// returned yet.
class Semaphore {
 public:
  // The most units it can count.
  static constexpr std::int64_t max() { return (std::int64_t{1} << 62) - 1; }

  // With so many units at first. Throws std::logic_error if that is below zero or above max().
  explicit Semaphore(std::int64_t units);
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  // Takes so many units, all at once; blocks until they are there and everybody who came before has been served.
  // Throws std::logic_error if `units` is below zero or above max().
  void acquire(std::int64_t units = 1) {
    if (!try_take(units)) [[unlikely]]
      (void)acquire_slowly(units, detail::kNoDeadline);
  }

  // False: they are not there, or somebody waits already. Never blocks. Throws as acquire().
  [[nodiscard]] bool try_acquire(std::int64_t units = 1) {
    return try_take(units) || try_acquire_slowly(units);
  }

  // As acquire(), but waits no longer than so. False: time was up, and nothing was taken.
  template <class Rep, class Period>
  [[nodiscard]] bool try_acquire_for(std::chrono::duration<Rep, Period> duration,
                                     std::int64_t units = 1) {
    return try_take(units) || acquire_slowly(units, detail::deadline_after(duration));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_acquire_until(std::chrono::time_point<Clock, Duration> time,
                                       std::int64_t units = 1) {
    return try_take(units) || detail::wait_until(time, [&](detail::DeadlineNs deadline) {
             return acquire_slowly(units, deadline);
           });
  }

  // As acquire(), but no longer than until the context is over (context.h): then it throws, or
  // returns false, and has taken nothing; those behind it in line are served in its place.
  void acquire(const Context& context, std::int64_t units = 1) {
    std::error_code error;
    if (!acquire(context, units, error)) detail::throw_over(error, "Semaphore::acquire");
  }
  bool acquire(const Context& context, std::int64_t units, std::error_code& error) {
    return detail::wait_with(
        context, error, [&](sched::CancelSource* source) { return acquire_with(units, source); });
  }
  bool acquire(const Context& context, std::error_code& error) {
    return acquire(context, 1, error);
  }

  // Gives units back, or new ones. Never blocks. Throws std::logic_error and changes nothing if there would be more than
  // max(), or `units` is below zero.
  void release(std::int64_t units = 1);

 private:
  bool try_take(std::int64_t units) {
    // Unsigned: a senseless number is too large. The lowest bit says that somebody waits.
    std::uint64_t now = word_.load(std::memory_order_relaxed);
    std::uint64_t wanted = static_cast<std::uint64_t>(units) << 1;
    if (units < 0 || (now & 1) != 0 || now < wanted) return false;
    return word_.compare_exchange_strong(now, now - wanted, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  bool acquire_slowly(std::int64_t units, detail::DeadlineNs deadline);
  bool acquire_with(std::int64_t units, sched::CancelSource* source);
  template <class Until>
  bool wait_in_line(std::int64_t units, Until until);
  bool try_acquire_slowly(std::int64_t units);
  bool release_and_serve(std::int64_t units);

  // What happens in it: src/sync/semaphore.cc.
  std::atomic<std::uint64_t> word_;     // atomic [semaphore]
  std::atomic<std::uint32_t> lock_{0};  // atomic [lock]
  detail::TransitStorage given_;
  detail::WaitStorage waiters_;
};

}  // namespace magpie
