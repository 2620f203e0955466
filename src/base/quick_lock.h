// quick_lock.h: a lock that is released by a plain store. For memory that stays a lock for ever.
//
// Protocol  [quick-lock]
//   unlock:   held = 0;            light_fence();  read sleepers; not 0 -> wake one
//   sleeper:  sleepers + 1;        heavy_fence();  while (!try_lock()) sleep in the kernel while held == 1
//             sleepers - 1 once it has the lock
//
// Goal      base::Lock pays two locked instructions for an uncontended pair, this one pays one. It is for locks that
//           are taken at every step and nearly always free, held for some nanoseconds.
// No loss   Sleeper and unlocker each write, then read what the other wrote, with a full fence between
//           (base/fence.h). So either the unlocker sees the sleeper and wakes one, or the sleeper sees the lock free,
//           or held by somebody whose unlock comes later and for whom the same is true. The kernel compares `held`
//           again before it lets the sleeper sleep, so a wake-up that comes too early is not missed either.
// Chain     A woken sleeper counts until it has the lock; when it unlocks it sees the others and wakes the next.
// Lifetime  unlock() reads `sleepers` after the lock is free, when the last user may already have gone. The memory
//           must therefore never become anything else but such a lock; a stray wake-up harms nobody.
// Orders    [quick-lock] try_lock acquires what unlock released; the fences order the rest.
// Proof     tests/model/quick_lock_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/cpu.h"
#include "base/fence.h"
#ifndef MAGPIE_MODEL
#include "base/futex.h"
#endif

namespace magpie::base {

// What the lock agrees on; the sleeping is the owner's.
class QuickLockWords {
 public:
  bool try_lock() {
    std::uint32_t free = kFree;
    return held_.compare_exchange_strong(free, kHeld, acquire, relaxed);
  }
  bool looks_free() const { return held_.load(relaxed) == kFree; }  // relaxed: only a hint

  // True: wake one sleeper.
  [[nodiscard]] bool unlock() {
    held_.store(kFree, release);
    light_fence();                        // [quick-lock] other side: announce_sleeper()
    return sleepers_.load(relaxed) != 0;  // relaxed: the fence orders it
  }

  // Before the last look and the sleep.
  void announce_sleeper() {
    sleepers_.fetch_add(1, relaxed);  // relaxed: the fence orders it
    heavy_fence();                    // [quick-lock] other side: unlock()
  }
  // With the lock.
  void is_awake() {
    sleepers_.fetch_sub(1, relaxed);
  }  // relaxed: too high a count only wakes in vain

  static constexpr std::uint32_t kFree = 0, kHeld = 1;
  const Atomic<std::uint32_t>& held() const { return held_; }

 private:
  Atomic<std::uint32_t> held_{kFree};  // atomic [quick-lock]
  Atomic<std::uint32_t> sleepers_{0};  // atomic [quick-lock]: sleepers write, unlockers read
};

#ifndef MAGPIE_MODEL
// Models Lockable. The rules of base::Lock hold for whoever has it: no blocking, no user code, no wake-ups.
class QuickLock {
 public:
  // prepare_fences() has been called.
  void lock() {
    if (!words_.try_lock()) [[unlikely]]
      lock_slowly();
  }
  bool try_lock() { return words_.try_lock(); }
  void unlock() {
    if (words_.unlock()) [[unlikely]]
      wake_one();
  }

 private:
  // Pauses between looks: twice as many each time. While two threads use what is locked at every step, each takes
  // the lines from the other; one that stands back for a third of a microsecond, and then for a whole one, lets the other do
  // scores of steps meanwhile.
  static constexpr int kFirstGap = 16;
  static constexpr int kLongestGap = 64;
  static constexpr int kLongGaps = 4;

  bool spin_for_it() {
    int long_gaps = 0;
    for (int gap = kFirstGap; long_gaps < kLongGaps; gap = gap < kLongestGap ? 2 * gap : gap) {
      for (int i = 0; i < gap; ++i) cpu_relax();
      if (words_.looks_free() && words_.try_lock()) return true;
      if (gap == kLongestGap) ++long_gaps;
    }
    return false;
  }

  [[gnu::noinline]] void lock_slowly() {
    if (spin_for_it()) return;
    words_.announce_sleeper();
    while (!words_.try_lock()) futex_wait(words_.held(), QuickLockWords::kHeld);
    words_.is_awake();
  }

  [[gnu::noinline]] void wake_one() { futex_wake(words_.held(), 1); }

  QuickLockWords words_;
};
#endif

}  // namespace magpie::base
