// rw_mutex.h: a lock that many readers or one writer may hold.
#pragma once

#include <magpie/detail/cxx20.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <system_error>

#include <magpie/detail/api.h>
#include <magpie/detail/deadline.h>
#include <magpie/detail/short_way.h>
#include <magpie/detail/wait_storage.h>
#include <magpie/detail/with_context.h>

namespace magpie {

// A lock that many readers or one writer may hold. Models SharedTimedLockable, so std::shared_lock
// works beside std::unique_lock and std::lock_guard.
//
// Nobody starves: a writer that waits keeps new readers out, and when a writer unlocks, all readers
// that wait go before the next writer. So a reader must not lock the mutex for reading again: it
// would wait for a writer that waits for it.
//
// Readers on several cores use cache lines of their own while no writer comes. So it is large.
//
// May be destroyed as soon as nobody holds it or waits for it.
class MAGPIE_API RWMutex {
 public:
  constexpr RWMutex() = default;
  RWMutex(const RWMutex&) = delete;
  RWMutex& operator=(const RWMutex&) = delete;

  // Blocks until the caller holds the mutex alone.
  void lock() noexcept {
    if (!try_lock_fast()) [[unlikely]]
      lock_slow();
  }

  // Takes the mutex if it is free. False: a reader or a writer holds it. Never blocks.
  [[nodiscard]] bool try_lock() noexcept {
    if (try_lock_fast()) [[likely]]
      return true;
    return (has_given() || is_striped() || detail::short_way.is_closed()) && try_lock_slow();
  }

  // Releases the mutex. Any goroutine or thread may unlock what another one has locked. Never
  // blocks. Ends the program with a message if no writer holds the mutex.
  void unlock() noexcept {
    // The model runs its twin, RWWord::try_unlock.
    std::uint64_t only_writer = kWriter;
    if (!word_.compare_exchange_strong(only_writer, 0, std::memory_order_release,
                                       std::memory_order_relaxed)) [[unlikely]] {
      unlock_slow();
    }
  }

  // Blocks until no writer holds the mutex or waits for it; then the caller holds it with other
  // readers.
  void lock_shared() noexcept {
    // The model runs its twin, RWWord::try_add_reader.
    std::uint64_t now = word_.load(std::memory_order_relaxed);
    bool is_in = now < kStripedLeast &&
                 word_.compare_exchange_strong(now, now + 1, std::memory_order_acquire,
                                               std::memory_order_relaxed);
    if (!is_in) [[unlikely]]
      lock_shared_contended();
  }

  // Takes the mutex for reading. False: a writer holds it or waits for it. Never blocks.
  [[nodiscard]] bool try_lock_shared() noexcept {
    if (try_lock_shared_fast()) [[likely]]
      return true;
    bool looks_held = !has_given() && !has_readers() && !detail::short_way.is_closed();
    return !looks_held && try_lock_shared_slow();
  }

  // Block until the caller holds the mutex or time is up. False: time was up. A writer that gives
  // up no longer keeps readers out. Any clock will do.
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> duration) noexcept {
    return try_lock() || lock_until(detail::deadline_after(duration));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> time) noexcept {
    return try_lock() || detail::wait_until(time, [this](detail::DeadlineNs deadline) {
             return lock_until(deadline);
           });
  }
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_shared_for(std::chrono::duration<Rep, Period> duration) noexcept {
    return try_lock_shared() || lock_shared_until(detail::deadline_after(duration));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_shared_until(std::chrono::time_point<Clock, Duration> time) noexcept {
    return try_lock_shared() || detail::wait_until(time, [this](detail::DeadlineNs deadline) {
             return lock_shared_until(deadline);
           });
  }

  // Block until the caller holds the mutex or the context is over (context.h). If the context is
  // over, they throw std::system_error; with `error`, they return false. A writer that gives up no
  // longer keeps readers out.
  void lock(const Context& context) {
    std::error_code error;
    if (!lock(context, error)) detail::throw_over(error, "RWMutex::lock");
  }
  bool lock(const Context& context, std::error_code& error) {
    return detail::wait_with(context, error,
                             [this](sched::CancelSource* source) { return lock_with(source); });
  }
  void lock_shared(const Context& context) {
    std::error_code error;
    if (!lock_shared(context, error)) detail::throw_over(error, "RWMutex::lock_shared");
  }
  bool lock_shared(const Context& context, std::error_code& error) {
    return detail::wait_with(
        context, error, [this](sched::CancelSource* source) { return lock_shared_with(source); });
  }

  // Releases the mutex for one reader. Never blocks. Ends the program with a message if no reader
  // holds it.
  void unlock_shared() noexcept {
    if (is_striped() && try_leave_stripe()) return;
    // The model runs its twin, RWWord::remove_reader.
    std::uint64_t before = word_.fetch_sub(1, std::memory_order_release);
    // no reader, or a writer
    if (before - 1 >= detail::short_way.reader_limit.load(std::memory_order_relaxed)) [[unlikely]]
      unlock_shared_slow(before);
  }

 private:
  static constexpr std::uint64_t kWriter = detail::ShortWay::kWriter;
  static constexpr std::uint64_t kStripedLeast = std::uint64_t{1} << 30;
  static constexpr unsigned kStripes = 4;

  struct Insides;

  // The model runs its twin, RWWord::try_lock.
  bool try_lock_fast() noexcept {
    std::uint64_t free = 0;
    return word_.compare_exchange_strong(free,
                                         detail::short_way.writer.load(std::memory_order_relaxed),
                                         std::memory_order_acquire, std::memory_order_relaxed);
  }
  bool try_lock_shared_fast() noexcept {
    if (is_striped() && try_enter_stripe()) return true;
    std::uint64_t now = word_.load(std::memory_order_relaxed);
    while (now < kWriter) {
      if (word_.compare_exchange_weak(now, now + 1, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  // unlock() has let a waiter in, and the waiter has not run yet. It may be a goroutine that run()
  // has dropped since.
  bool has_given() const noexcept { return given_.amount.load(std::memory_order_relaxed) != 0; }
  bool is_striped() const noexcept {
    std::uint64_t now = word_.load(std::memory_order_relaxed);
    return now >= kStripedLeast && now < kWriter;
  }
  bool try_lock_slow() noexcept;
  // Readers are counted. If the WRITER bit beside them is abandoned, they may hold the mutex: see
  // rw_mutex_core.h.
  bool has_readers() const noexcept {
    return (word_.load(std::memory_order_relaxed) & (kWriter - 1)) != 0;
  }
  bool try_lock_shared_slow() noexcept;

  void lock_slow() noexcept;
  bool lock_until(detail::DeadlineNs deadline) noexcept;
  bool lock_shared_until(detail::DeadlineNs deadline) noexcept;
  bool lock_with(sched::CancelSource* source) noexcept;
  bool lock_shared_with(sched::CancelSource* source) noexcept;
  void unlock_slow() noexcept;
  void lock_shared_contended() noexcept;
  void lock_shared_slow() noexcept;
  bool try_enter_stripe() noexcept;
  bool try_leave_stripe() noexcept;
  void unlock_shared_slow(std::uint64_t before) noexcept;

  // [rw-mutex]: src/sync/rw_mutex_core.h.
  std::atomic<std::uint64_t> word_{0};  // atomic [rw-mutex]
  std::atomic<std::uint32_t> lock_{0};  // atomic [lock]
  std::uint32_t counts_[4] = {};
  std::atomic<std::uint64_t> woken_{0};  // atomic, written under lock_
  detail::TransitStorage given_;
  detail::WaitStorage readers_;
  detail::WaitStorage writers_;

  // When to open the stripes.
  std::atomic<std::uint32_t> meetings_{0};       // atomic, a hint: of readers at the word
  std::atomic<std::uint32_t> more_meetings_{0};  // atomic, a hint: before the one that opens
  std::int64_t opened_ns_ = 0;                   // guarded by lock_

  struct alignas(64) Stripe {
    std::atomic<std::uint64_t> word{0};  // atomic [rw-mutex]
  };
  Stripe stripes_[kStripes];
};

}  // namespace magpie
