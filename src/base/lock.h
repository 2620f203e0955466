// lock.h: the lock inside the runtime: spin briefly, then sleep in the kernel.
//
//      0 FREE --lock--> 1 HELD --a waiter gives up spinning--> 2 HELD, SOMEBODY SLEEPS
//
// The holder may have been descheduled by the kernel, so nobody spins for long. Nothing that can block,
// allocate or run user code may happen while one is held, unless a comment says why it is safe.
// Models Lockable. Unlock touches the word once; the wake-up after it may hit freed memory, harmlessly.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/cpu.h"
#include "base/futex.h"

namespace magpie::base {

class Lock {
 public:
  void lock() {
    if (!try_lock()) lock_slowly();
  }

  bool try_lock() {
    std::uint32_t expected = kFree;
    // acquire: pairs with the release in unlock()
    return word_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }

  void unlock() {
    if (word_.exchange(kFree, std::memory_order_release) == kSleepers) futex_wake(word_, 1);
  }

 private:
  static constexpr std::uint32_t kFree = 0, kHeld = 1, kSleepers = 2;
  static constexpr int kSpins = 60;

  [[gnu::noinline]] void lock_slowly() {
    for (int spin = 0; spin < kSpins; ++spin) {
      cpu_relax();
      // relaxed: only a hint; try_lock acquires
      if (word_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
    }
    // Whoever slept once takes the lock as kSleepers: others may sleep behind it.
    while (word_.exchange(kSleepers, std::memory_order_acquire) != kFree) {
      futex_wait(word_, kSleepers);
    }
  }

  std::atomic<std::uint32_t> word_{kFree};
};

}  // namespace magpie::base
