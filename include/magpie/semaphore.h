// semaphore.h: a number of units that goroutines take and give back.
#pragma once

#include <magpie/detail/cxx20.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <system_error>

#include <magpie/detail/api.h>
#include <magpie/detail/deadline.h>
#include <magpie/detail/wait_storage.h>
#include <magpie/detail/with_context.h>

namespace magpie {

// A count of units. Waiters are served in the order in which they came: small requests do not
// overtake a large one.
//
// A caller that has acquired the last unit may destroy the semaphore, even if the release() that
// supplied the unit has not returned yet.
class MAGPIE_API Semaphore {
 public:
  // The largest count.
  static constexpr std::int64_t max() { return (std::int64_t{1} << 62) - 1; }

  // Starts with `units` units. Throws std::logic_error if that is below zero or above max().
  explicit Semaphore(std::int64_t units);
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  // Takes `units` units, all at once. Blocks until they are there and all earlier callers have been
  // served. Throws std::logic_error if `units` is below zero or above max().
  void acquire(std::int64_t units = 1) {
    if (!try_take(units)) [[unlikely]]
      (void)acquire_slow(units, detail::kNoDeadline);
  }

  // Takes the units if they are there and nobody waits. False: it took nothing. Never blocks.
  // Throws as acquire().
  [[nodiscard]] bool try_acquire(std::int64_t units = 1) {
    return try_take(units) || try_acquire_slow(units);
  }

  // As acquire(), until time is up. False: time was up, and it took nothing. Any clock will do.
  template <class Rep, class Period>
  [[nodiscard]] bool try_acquire_for(std::chrono::duration<Rep, Period> duration,
                                     std::int64_t units = 1) {
    return try_take(units) || acquire_slow(units, detail::deadline_after(duration));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_acquire_until(std::chrono::time_point<Clock, Duration> time,
                                       std::int64_t units = 1) {
    return try_take(units) || detail::wait_until(time, [&](detail::DeadlineNs deadline) {
             return acquire_slow(units, deadline);
           });
  }

  // As acquire(), until the context is over (context.h): then it throws std::system_error; with
  // `error`, it returns false. It has taken nothing then, and the waiters behind it are served.
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

  // Adds `units` units and serves waiters. Never blocks. Throws std::logic_error, and changes
  // nothing, if the count would exceed max() or `units` is below zero.
  void release(std::int64_t units = 1);

 private:
  // The model runs its twin, SemaphoreWord::try_take.
  bool try_take(std::int64_t units) {
    // Unsigned: a senseless number is too large. The lowest bit says that somebody waits.
    std::uint64_t now = word_.load(std::memory_order_relaxed);
    std::uint64_t wanted = static_cast<std::uint64_t>(units) << 1;
    if (units < 0 || (now & 1) != 0 || now < wanted) return false;
    return word_.compare_exchange_strong(now, now - wanted, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  bool acquire_slow(std::int64_t units, detail::DeadlineNs deadline);
  bool acquire_with(std::int64_t units, sched::CancelSource* source);
  template <class Until>
  bool wait_in_line(std::int64_t units, Until until);
  bool try_acquire_slow(std::int64_t units);
  void release_slow(std::int64_t units);
  bool release_late(std::int64_t units);

  // [semaphore]: src/sync/semaphore_core.h.
  std::atomic<std::uint64_t> word_;     // atomic [semaphore]
  std::atomic<std::uint32_t> lock_{0};  // atomic [lock]
  detail::TransitStorage given_;
  detail::WaitStorage waiters_;
};

}  // namespace magpie
