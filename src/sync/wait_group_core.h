// wait_group_core.h: a count, and those who wait for it to become zero.
//
// Protocol  [wait-group]
//   The word holds the count and one bit, WAITERS, set while somebody is, or is about to be, on the list.
//   add:   one fetch-add. It reached zero and WAITERS is set: under the list's lock clear it and take the list; wake.
//   wait:  the count is zero -> go on. Else, under the list's lock: set WAITERS, provided that the count is still
//          not zero; get on the list; sleep. The lock is released in the commit step.
//
// No loss   The bit is set and the count tested in one compare-exchange. So either the waiter sees zero, or
//           whoever brings the count to zero sees the bit, and then takes the lock, behind which the waiter
//           has got on the list.
// Lifetime  After wait() returned the group may be destroyed. Whoever reached zero without WAITERS does not
//           touch it again; whoever reached zero with it wakes the waiters after its last touch.
// Misuse    A count that would leave its range is put back; a waiter that comes in between may be confused,
//           but the caller is told.
// Orders    [wait-group] changes release what was done before them, a zero that is seen acquires it.
// Proof     tests/model/wait_group_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace magpie::sync {

class WaitGroupWord {
 public:
  enum class Added { done, reached_zero_with_waiters, out_of_range };

  static Added add(base::Atomic<std::uint64_t>& word, std::int64_t n) {
    std::uint64_t change = static_cast<std::uint64_t>(n) << 1;
    std::uint64_t before = word.fetch_add(change, base::acq_rel);
    // Unsigned, so that a senseless n wraps around to below zero.
    auto count = static_cast<std::int64_t>((before >> 1) + static_cast<std::uint64_t>(n));
    if (count < 0 || count > kMost) [[unlikely]] {
      word.fetch_sub(change, base::relaxed);  // relaxed: nothing was done
      return Added::out_of_range;
    }
    return count == 0 && (before & kWaiters) != 0 ? Added::reached_zero_with_waiters : Added::done;
  }

  // Under the list's lock, by whoever reached zero with waiters.
  static void clear_waiters(base::Atomic<std::uint64_t>& word) {
    word.fetch_sub(kWaiters, base::relaxed);
  }

  static bool is_zero(const base::Atomic<std::uint64_t>& word) {
    return word.load(base::acquire) >> 1 == 0;
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
};

}  // namespace magpie::sync
