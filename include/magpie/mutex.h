// mutex.h: a lock for goroutines: who waits for it lets other goroutines run.
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

namespace detail {

// What happens in it: src/sync/mutex.cc.
struct MutexState {
  std::atomic<std::uint32_t> word{0};   // atomic [mutex]
  std::atomic<std::uint32_t> lock{0};   // atomic [lock]
  std::atomic<std::uint64_t> woken{0};  // atomic, written under lock: who is being handed it
  WaitStorage waiters;
};

enum class LockedBy : std::uint8_t { mutex, once };

void lock_slowly(MutexState& mutex, LockedBy what) noexcept;
bool lock_until(MutexState& mutex, DeadlineNs deadline) noexcept;
bool lock_with(MutexState& mutex, sched::CancelSource* source) noexcept;
void unlock_slowly(MutexState& mutex) noexcept;
bool take_back_from_dropped(MutexState& mutex) noexcept;

inline bool try_lock(MutexState& mutex) noexcept {
  std::uint32_t free = 0;
  return mutex.word.compare_exchange_strong(free, 1, std::memory_order_acquire,
                                            std::memory_order_relaxed);
}
inline void unlock(MutexState& mutex) noexcept {
  std::uint32_t held = 1;
  if (!mutex.word.compare_exchange_strong(held, 0, std::memory_order_release,
                                          std::memory_order_relaxed)) [[unlikely]] {
    unlock_slowly(mutex);
  }
}

}  // namespace detail

// One at a time. Models TimedLockable, so std::lock_guard, std::unique_lock and std::scoped_lock work. Not recursive.
// As fast as can be while nobody has waited for a millisecond: whoever comes first gets it. Then those who wait are
// served in the order they came, until none of them has waited that long.
// May be destroyed as soon as nobody holds it or waits for it, also by one who has just got it from another whose
// unlock() has not returned yet.
class Mutex {
 public:
  constexpr Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // Blocks until the caller holds it.
  void lock() noexcept {
    if (!detail::try_lock(state_)) [[unlikely]]
      detail::lock_slowly(state_, detail::LockedBy::mutex);
  }

  // False: somebody holds it. Never blocks.
  [[nodiscard]] bool try_lock() noexcept {
    if (detail::try_lock(state_)) [[likely]]
      return true;
    // Most often there is nobody to whom it was handed, and who may have been dropped since.
    return state_.woken.load(std::memory_order_relaxed) != 0 &&
           detail::take_back_from_dropped(state_);
  }

  // Blocks until the caller holds it, but not longer than so. False: time was up.
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> duration) noexcept {
    return try_lock() || detail::lock_until(state_, detail::deadline_after(duration));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> time) noexcept {
    return try_lock() || detail::wait_until(time, [this](detail::DeadlineNs deadline) {
             return detail::lock_until(state_, deadline);
           });
  }

  // Blocks until the caller holds it, or the context is over (context.h): then it throws, or
  // returns false. Afterwards std::lock_guard and std::unique_lock take it over with
  // std::adopt_lock.
  void lock(const Context& context) {
    std::error_code error;
    if (!lock(context, error)) detail::throw_over(error, "Mutex::lock");
  }
  bool lock(const Context& context, std::error_code& error) {
    return detail::wait_with(context, error, [this](sched::CancelSource* source) {
      return detail::lock_with(state_, source);
    });
  }

  // Any goroutine or thread may unlock what another has locked. Does not block, but may let the one that it wakes run
  // first, if that one has waited for a millisecond. Ends the program with a message if nobody holds it.
  void unlock() noexcept { detail::unlock(state_); }

 private:
  detail::MutexState state_;
};

}  // namespace magpie
