// event.h: one thread sleeps until another sets the event. Waiting resets it.
//
// Protocol  [event]
//
//            set                    wait
//   0 CLEAR -----> 1 SET ----------------> CLEAR, returns at once
//   0 CLEAR --wait--> 2 SLEEPING --set--> SET, wakes the sleeper
//                       2 SLEEPING --time is up--> CLEAR
//
// Sides   wait: one thread, the owner.  set: anyone; a second set before the wait changes nothing.
// No loss Every step is a read-modify-write, also the owner's step from SET to CLEAR. If a set
//         comes before that step, the step reads it, so the owner sees what the setter wrote. If a
//         set comes after that step, it is there for the next wait. A plain store could wipe out a
//         set that the owner has not read.
//         The kernel compares SLEEPING again before the owner sleeps.
// Orders  [event] set releases, wait acquires: what was written before set() is seen after wait().
// Use     After wait() returned the owner may destroy the event. set() does not touch it after its
//         exchange, but for a futex wake on the bare address.
// Proof   tests/model/event_model.cc
#pragma once

#include <cstdint>
#include <limits>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/futex.h"

namespace magpie::base {

class Event {
 public:
  void set() {
    if (word_.exchange(kSet, acq_rel) == kSleeping) futex_wake(word_, 1);
  }

  void wait() {
    while (!sleep_once(kNever)) {
    }
  }

  // False: the time (base::now_ns) has come and the event was not set.
  [[nodiscard]] bool wait_until(std::int64_t deadline_ns) {
    while (!sleep_once(deadline_ns)) {
      if (now_ns() >= deadline_ns) return !withdraw();
    }
    return true;
  }

  bool is_set() const { return word_.load(acquire) == kSet; }

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  static constexpr std::uint32_t kClear = 0, kSet = 1, kSleeping = 2;

  // True when the event was set and is now clear again.
  bool sleep_once(std::int64_t deadline_ns) {
    std::uint32_t expected = kSet;
    if (word_.compare_exchange_strong(expected, kClear, acquire, relaxed)) return true;
    if (expected == kClear &&
        !word_.compare_exchange_strong(expected, kSleeping, relaxed, relaxed)) {
      word_.exchange(kClear, acquire);  // only set() could interfere: it is set, maybe twice
      return true;
    }
    if (deadline_ns == kNever) {
      futex_wait(word_, kSleeping);
    } else {
      futex_wait_until(word_, kSleeping, deadline_ns);
    }
    expected = kSet;
    return word_.compare_exchange_strong(expected, kClear, acquire, relaxed);
  }

  // Call this after a sleep. False: the event was set after all, and is clear now.
  bool withdraw() { return word_.exchange(kClear, acquire) != kSet; }

  Atomic<std::uint32_t> word_{kClear};  // atomic [event]
};

}  // namespace magpie::base
