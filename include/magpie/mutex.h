// mutex.h: a lock for goroutines. A goroutine that waits for it lets other goroutines run.
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

namespace detail {

// [mutex]: src/sync/mutex_core.h.
struct MutexState {
  std::atomic<std::uint32_t> word{0};   // atomic [mutex]
  std::atomic<std::uint32_t> lock{0};   // atomic [lock]
  std::atomic<std::uint64_t> woken{0};  // atomic, written under lock: see woken_mark.h
  WaitStorage waiters;
  // Where the stack of the last owner was when it took the mutex: tells dumps who holds it. Only
  // the owner writes it; meaningless while the mutex is free.
  std::uintptr_t locked_at = 0;
};

// The caller has just taken the mutex. One instruction (two on AArch64), so it is always done.
[[gnu::always_inline]] inline void note_owner(MutexState& mutex) noexcept {
#if defined(__x86_64__)
  asm("movq %%rsp, %0" : "=m"(mutex.locked_at));
#elif defined(__aarch64__)
  std::uintptr_t sp;
  asm("mov %0, sp" : "=r"(sp));
  __atomic_store_n(&mutex.locked_at, sp, __ATOMIC_RELAXED);
#endif
}

enum class LockedBy : std::uint8_t { mutex, once };

MAGPIE_API void lock_slow(MutexState& mutex, LockedBy what) noexcept;
MAGPIE_API bool lock_until(MutexState& mutex, DeadlineNs deadline) noexcept;
MAGPIE_API bool lock_with(MutexState& mutex, sched::CancelSource* source,
                          LockedBy what = LockedBy::mutex) noexcept;
MAGPIE_API void unlock_slow(MutexState& mutex) noexcept;
MAGPIE_API bool try_lock_slow(MutexState& mutex) noexcept;

// The model runs its twin, MutexWord::try_take.
inline bool try_lock(MutexState& mutex) noexcept {
  std::uint32_t free = 0;
  return mutex.word.compare_exchange_strong(free,
                                            short_way.mutex_held.load(std::memory_order_relaxed),
                                            std::memory_order_acquire, std::memory_order_relaxed);
}
// The model runs its twin, MutexWord::try_give_back.
inline void unlock(MutexState& mutex) noexcept {
  std::uint32_t held = ShortWay::kMutexHeld;
  if (!mutex.word.compare_exchange_strong(held, 0, std::memory_order_release,
                                          std::memory_order_relaxed)) [[unlikely]] {
    unlock_slow(mutex);
  }
}

}  // namespace detail

// Mutual exclusion. At most one goroutine or thread holds the mutex at a time. Not recursive.
// Models TimedLockable, so std::lock_guard, std::unique_lock and std::scoped_lock work.
//
// While no waiter has waited for a millisecond, a newcomer may take a free mutex ahead of the
// waiters. Once a waiter has waited that long, unlock() hands the mutex to the waiters in the order
// in which they came, until the next waiter has waited for less.
//
// A caller that holds the mutex may destroy it after its own unlock() if nobody else waits, even if
// the unlock() that handed it the mutex has not returned yet.
class Mutex {
 public:
  constexpr Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // Blocks until the caller holds the mutex.
  void lock() noexcept {
    if (!detail::try_lock(state_)) [[unlikely]]
      detail::lock_slow(state_, detail::LockedBy::mutex);
    detail::note_owner(state_);
  }

  // Takes the mutex if it is free. False: it is held. Never blocks.
  [[nodiscard]] bool try_lock() noexcept {
    if (!detail::try_lock(state_)) [[unlikely]] {
      // Mostly no goroutine has been handed the mutex. The goroutine that was may have been dropped
      // since.
      bool looks_held =
          state_.woken.load(std::memory_order_relaxed) == 0 && !detail::short_way.is_closed();
      if (looks_held || !detail::try_lock_slow(state_)) return false;
    }
    detail::note_owner(state_);
    return true;
  }

  // Blocks until the caller holds the mutex or time is up. False: time was up. Any clock will do.
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

  // Blocks until the caller holds the mutex or the context is over (context.h). If the context is
  // over, throws std::system_error; with `error`, returns false. std::lock_guard and
  // std::unique_lock take a locked mutex over with std::adopt_lock.
  void lock(const Context& context) {
    std::error_code error;
    if (!lock(context, error)) detail::throw_over(error, "Mutex::lock");
  }
  bool lock(const Context& context, std::error_code& error) {
    return detail::wait_with(context, error, [this](sched::CancelSource* source) {
      if (!detail::lock_with(state_, source)) return false;
      detail::note_owner(state_);
      return true;
    });
  }

  // Releases the mutex. Any goroutine or thread may unlock what another one has locked. Never
  // blocks, but yields to a waiter that it hands the mutex to. Ends the program with a message if
  // nobody holds the mutex.
  void unlock() noexcept { detail::unlock(state_); }

 private:
  bool lock_until(detail::DeadlineNs deadline) noexcept {
    if (!detail::lock_until(state_, deadline)) return false;
    detail::note_owner(state_);
    return true;
  }

  detail::MutexState state_;
};

}  // namespace magpie
