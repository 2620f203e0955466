// lock.h: the lock inside the runtime: spin briefly, then sleep in the kernel.
//
// Protocol  [lock]
//
//      0 FREE --lock--> 1 HELD --a waiter gives up spinning--> 2 HELD, SOMEBODY SLEEPS
//
// The holder may have been descheduled by the kernel, so nobody spins for long. Nothing that can
// block, allocate or run user code may happen while one is held, unless a comment says why it is
// safe. Models Lockable. Unlock touches the word once; the wake-up after it may hit freed memory,
// harmlessly.
//
// No loss   A waiter writes 2 before it sleeps, and the kernel compares again before it lets it
//           sleep. So either the unlock reads 2 and wakes one sleeper, or the waiter finds the lock
//           free. A woken sleeper cannot know whether others sleep, so it takes the lock as 2, and
//           its unlock wakes the next.
// Orders    [lock] taking acquires, unlocking releases.
// Proof     tests/model/lock_model.cc
#pragma once

#include <cstdint>

#include "base/annotations.h"
#include "base/atomic.h"
#include "base/cpu.h"
#include "base/futex.h"

namespace magpie::base {

// For a lock that one function takes and another releases, most often after the goroutine has
// parked: Clang cannot follow that.
class UncheckedLock {
 public:
  void lock() {
    if (!try_lock()) lock_slow();
  }

  bool try_lock() {
    std::uint32_t expected = kFree;
    // acquire: pairs with the release in unlock()
    return word_.compare_exchange_strong(expected, kHeld, acquire, relaxed);
  }

  void unlock() {
    if (word_.exchange(kFree, release) == kSleepers) futex_wake(word_, 1);
  }

 private:
  static constexpr std::uint32_t kFree = 0, kHeld = 1, kSleepers = 2;
#ifdef MAGPIE_MODEL
  static constexpr int kSpins = 1;  // more of the same
#else
  static constexpr int kSpins = 60;
#endif

  [[gnu::noinline]] void lock_slow() {
    for (int spin = 0; spin < kSpins; ++spin) {
      cpu_relax();
      // relaxed: only a hint; try_lock acquires
      if (word_.load(relaxed) == kFree && try_lock()) return;
    }
    // A thread that has slept takes the lock as kSleepers: others may sleep behind it.
    while (word_.exchange(kSleepers, acquire) != kFree) {
      futex_wait(word_, kSleepers);
    }
  }

  Atomic<std::uint32_t> word_{kFree};  // atomic [lock]
};

// The usual lock. Clang checks that it is held where annotations ask for it; see base/guard.h.
class MAGPIE_LOCK_TYPE Lock {
 public:
  void lock() MAGPIE_ACQUIRES() { lock_.lock(); }
  bool try_lock() MAGPIE_TRIES_TO_ACQUIRE(true) { return lock_.try_lock(); }
  void unlock() MAGPIE_RELEASES() { lock_.unlock(); }

  // Does nothing: tells Clang that the caller holds the lock, where Clang cannot see it.
  void assume_held() const MAGPIE_ASSUMES_HELD {}

 private:
  UncheckedLock lock_;
};

}  // namespace magpie::base
