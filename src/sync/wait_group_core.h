// wait_group_core.h: a count, and the waiters for zero.
//
// Protocol  [wait-group]
//   The word holds the count and one bit, WAITERS, which is set while a waiter is on the list or
//   about to get there.
//   add:   one compare-exchange. If it would reach zero while WAITERS is set, it takes the list's
//          lock first, makes count and bit zero in one compare-exchange, takes all waiters off the
//          list, and then wakes them.
//   wait:  goes on if the count is zero. Else, under the list's lock: sets WAITERS if the count is
//          still not zero, gets on the list and sleeps. The commit step releases the lock.
//
// No loss   One compare-exchange sets the bit and tests the count. So the waiter sees zero, or the
//           add that reaches zero sees the bit; then it takes the lock, behind which the waiter has
//           got on the list.
// Reuse     A waiter on the list waits for this zero and no later one: zero and the clearing of the
//           list happen in one hold of the lock, so nobody gets on the list in between.
// Lifetime  After all waits have returned the group may be destroyed. An add that reaches zero
//           without WAITERS does not touch the group again. One that reaches zero with WAITERS
//           wakes the waiters after its last touch. If all of them have been dropped, it clears the
//           bit and reaches zero as if it had seen no waiters.
// Misuse    A count out of range is never stored, so nobody sees it.
// Orders    [wait-group] changes release what was done before them; reading zero acquires it.
// Proof     tests/model/wait_group_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace magpie::sync {

class WaitGroupWord {
 public:
  enum class Added {
    done,
    zero_with_waiters,  // add: nothing happened yet, do add_locked; add_locked: wake everybody
    out_of_range,       // nothing happened
  };

  [[nodiscard]] static Added add(base::Atomic<std::uint64_t>& word, std::int64_t n) {
    std::uint64_t now = word.load(base::relaxed);  // relaxed: the exchange below looks again
    for (;;) {
      std::int64_t count = sum(now, n);
      if (count < 0 || count > kMost) [[unlikely]]
        return Added::out_of_range;
      if (count == 0 && (now & kWaiters) != 0) return Added::zero_with_waiters;
      if (word.compare_exchange_weak(now, pack(count) | (now & kWaiters), base::acq_rel,
                                     base::relaxed)) {
        return Added::done;
      }
    }
  }

  // The same under the list's lock; somebody is on the list.
  [[nodiscard]] static Added add_locked(base::Atomic<std::uint64_t>& word, std::int64_t n) {
    std::uint64_t now = word.load(base::relaxed);
    for (;;) {
      std::int64_t count = sum(now, n);
      if (count < 0 || count > kMost) return Added::out_of_range;
      std::uint64_t to = count == 0 ? 0 : pack(count) | (now & kWaiters);
      if (word.compare_exchange_weak(now, to, base::acq_rel, base::relaxed)) {
        return count == 0 ? Added::zero_with_waiters : Added::done;
      }
    }
  }

  // Under the list's lock: nobody is on the list.
  static void clear_waiters(base::Atomic<std::uint64_t>& word) {
    // relaxed: nobody acts on the bit's absence but by an exchange of his own
    std::uint64_t now = word.load(base::relaxed);
    while (!word.compare_exchange_weak(now, now & ~kWaiters, base::relaxed, base::relaxed)) {
    }
  }

  static bool is_zero(const base::Atomic<std::uint64_t>& word) {
    return word.load(base::acquire) >> 1 == 0;
  }

  static std::int64_t count_of(const base::Atomic<std::uint64_t>& word) {
    return static_cast<std::int64_t>(word.load(base::acquire) >> 1);
  }

  // Under the list's lock. False: the count is zero.
  [[nodiscard]] static bool announce_waiter(base::Atomic<std::uint64_t>& word) {
    std::uint64_t before = word.load(base::acquire);
    while (before >> 1 != 0) {
      if ((before & kWaiters) != 0) return true;
      if (word.compare_exchange_weak(before, before | kWaiters, base::acq_rel, base::acquire))
        return true;
    }
    return false;
  }

 private:
  static constexpr std::uint64_t kWaiters = 1;
  static constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;

  static std::uint64_t pack(std::int64_t count) { return static_cast<std::uint64_t>(count) << 1; }
  // Unsigned, so that a senseless n wraps around to below zero.
  static std::int64_t sum(std::uint64_t word, std::int64_t n) {
    return static_cast<std::int64_t>((word >> 1) + static_cast<std::uint64_t>(n));
  }
};

}  // namespace magpie::sync
