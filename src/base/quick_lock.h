// quick_lock.h: a lock that is released by a plain store. For memory that stays a lock for ever.
//
// Protocol  [quick-lock]
//   unlock:   held = 0;   light_fence();   read call; WANTED, and exchanged for NONE -> wake one
//   sleeper:  until it has the lock:  unless call is WANTED: call = WANTED;  heavy_fence()
//                                     try_lock();  else sleep in the kernel while call == WANTED,
//                                     and try a little once awake
//             with the lock:          call = WANTED, for the next sleeper, if there is one
//
// Goal      base::Lock pays two locked instructions for an uncontended pair, this one pays one. It
//           is for locks that are taken at every step, are nearly always free, and are held for
//           some nanoseconds.
// No loss   While a thread sleeps, one of three holds: call is WANTED, or a sleeper is awake, or a
//           sleeper is being woken. An awake sleeper will write WANTED before it sleeps or unlocks.
//           A sleeper and the holder each write, then read what the other wrote, with a full fence
//           between (base/fence.h). So either the sleeper gets the lock, or the holder's unlock
//           comes later and sees WANTED, unless another unlocker has exchanged it, which then wakes
//           one. The kernel compares `call` again before it lets the sleeper sleep, so a wake-up
//           that comes before the sleep is not missed either. Behind another thread's call a
//           sleeper needs no fence: that thread has one between its call and its own try, or holds
//           the lock and unlocks it after the call.
// One call  With more threads than CPUs it may take milliseconds until a woken sleeper runs.
//           Meanwhile threads unlock, perhaps ten thousand times, find NONE, and do not call the
//           kernel.
// Lifetime  unlock() reads `call` after the lock is free, when the last user may already have gone.
//           So the memory must never become anything else but such a lock. A stray wake-up does no
//           harm.
// Orders    [quick-lock] try_lock acquires what unlock released; the fences order the rest.
// Proof     tests/model/quick_lock_model.cc
#pragma once

#include <cstdint>

#include "base/annotations.h"
#include "base/atomic.h"
#include "base/cpu.h"
#include "base/fence.h"
#ifndef MAGPIE_MODEL
#include "base/futex.h"
#endif

namespace magpie::base {

// What the threads agree on. The class that owns the words does the sleeping.
class QuickLockWords {
 public:
  bool try_lock() {
    std::uint32_t free = kFree;
    return held_.compare_exchange_strong(free, kHeld, acquire, relaxed);
  }
  bool looks_free() const { return held_.load(relaxed) == kFree; }  // relaxed: only a hint

  // True: a thread calls for the lock; call answer().
  [[nodiscard]] bool unlock() {
    held_.store(kFree, release);
    light_fence();                        // [quick-lock] other side: call_for_it()
    return call_.load(relaxed) != kNone;  // relaxed: the fence orders it
  }
  // True: wake one sleeper. False: another unlocker does. Relaxed: nothing is read after it.
  [[nodiscard]] bool answer() { return call_.exchange(kNone, relaxed) == kWanted; }

  // Call this before the last try and each sleep.
  void call_for_it() {
    if (is_called()) return;
    call_.store(kWanted, relaxed);  // relaxed: the fence orders it
    heavy_fence();                  // [quick-lock] other side: unlock()
  }
  // A thread that slept calls this with the lock: its own unlock then wakes the next. If no thread
  // sleeps, that is in vain once.
  void call_for_next() { call_.store(kWanted, relaxed); }  // relaxed: the same thread reads it

  // Whether a call stands that no unlocker has answered. Relaxed: only a hint, the kernel looks
  // again.
  bool is_called() const { return call_.load(relaxed) == kWanted; }

  static constexpr std::uint32_t kNone = 0, kWanted = 1;
  const Atomic<std::uint32_t>& call() const { return call_; }

 private:
  static constexpr std::uint32_t kFree = 0, kHeld = 1;

  Atomic<std::uint32_t> held_{kFree};  // atomic [quick-lock]
  Atomic<std::uint32_t> call_{kNone};  // atomic [quick-lock]: sleepers raise it, unlockers take it
};

#ifndef MAGPIE_MODEL
// Models Lockable. The rules of base::Lock hold for its holder: no blocking, no user code, no
// wake-ups. Unchecked as UncheckedLock in base/lock.h.
class UncheckedQuickLock {
 public:
  // prepare_fences() has been called.
  void lock() {
    if (!words_.try_lock()) [[unlikely]]
      lock_slow();
  }
  bool try_lock() { return words_.try_lock(); }
  void unlock() {
    if (words_.unlock()) [[unlikely]]
      answer_call();
  }

 private:
  // Pauses between looks: twice as many each time. While two threads use what is locked at every
  // step, each takes the cache lines from the other. A thread that stands back for a third of a
  // microsecond, and then for a whole one, lets the other do scores of steps meanwhile.
  static constexpr int kFirstGap = 16;
  static constexpr int kLongestGap = 64;
  static constexpr int kLongGaps = 4;

  // If a call still stands at the second look, no thread has unlocked since: the holder has lost
  // its CPU. Then this thread should leave its CPU to the holder. False: sleep.
  bool spin_for_it() {
    int long_gaps = 0;
    bool was_called = false;
    for (int gap = kFirstGap; long_gaps < kLongGaps; gap = gap < kLongestGap ? 2 * gap : gap) {
      for (int i = 0; i < gap; ++i) cpu_relax();
      if (words_.looks_free() && words_.try_lock()) return true;
      if (gap == kLongestGap) ++long_gaps;
      bool called = words_.is_called();
      if (called && was_called) return false;
      was_called = called;
    }
    return false;
  }

  [[gnu::noinline]] void lock_slow() {
    if (spin_for_it()) return;
    do {
      words_.call_for_it();
      if (words_.try_lock()) break;
      futex_wait(words_.call(), QuickLockWords::kWanted);
    } while (!words_.try_lock() && !spin_for_it());
    words_.call_for_next();
  }

  [[gnu::noinline]] void answer_call() {
    if (words_.answer()) futex_wake(words_.call(), 1);
  }

  QuickLockWords words_;
};

// The same, and Clang checks it as it checks base::Lock.
class MAGPIE_LOCK_TYPE QuickLock {
 public:
  void lock() MAGPIE_ACQUIRES() { lock_.lock(); }
  bool try_lock() MAGPIE_TRIES_TO_ACQUIRE(true) { return lock_.try_lock(); }
  void unlock() MAGPIE_RELEASES() { lock_.unlock(); }
  void assume_held() const MAGPIE_ASSUMES_HELD {}

 private:
  UncheckedQuickLock lock_;
};
#endif

}  // namespace magpie::base
