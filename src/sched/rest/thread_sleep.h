// thread_sleep.h: a plain thread sleeps until a waker wakes it, or until it is told that a run()
// has ended.
//
//   The word has a bit for each of the two, and one that says that the thread sleeps in the kernel.
//
// Sides   sleep: one thread, the owner. wake: the waker that was told of it, once for each sleep.
//         tell: see run_end.h.
// Orders  wake and tell release, sleep acquires: the sleeper sees what was written before.
// Use     After sleep() returned `woken` the owner may destroy it. wake() does not touch it after
//         its exchange, but for a futex wake on the bare address.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/futex.h"
#include "timer/timer.h"

namespace magpie::sched {

class ThreadSleep {
 public:
  enum class End { woken, told, time_is_up };

  void wake() { post(kWoken); }
  void tell() { post(kTold); }

  // Sleeps until base::now_ns() is `deadline_ns`; kNever: without end. After time_is_up a waker may
  // still wake the thread.
  [[nodiscard]] End sleep(std::int64_t deadline_ns) {
    for (;;) {
      std::uint32_t now = word_.load(std::memory_order_acquire);
      if ((now & kWoken) != 0) {
        // Not a store: a tell() at this moment is for the next sleep, if the thread waits again.
        word_.fetch_and(kTold, std::memory_order_relaxed);
        return End::woken;
      }
      if ((now & kTold) != 0) {
        word_.fetch_and(~kTold, std::memory_order_acquire);
        return End::told;
      }
      if (deadline_ns != timer::kNever && base::now_ns() >= deadline_ns) return End::time_is_up;
      if (now == 0 && !word_.compare_exchange_strong(now, kSleeping, std::memory_order_acquire))
        continue;
      if (deadline_ns == timer::kNever) {
        base::futex_wait(word_, kSleeping);
      } else {
        base::futex_wait_until(word_, kSleeping, deadline_ns);
      }
    }
  }

 private:
  static constexpr std::uint32_t kWoken = 1, kTold = 2, kSleeping = 4;

  void post(std::uint32_t bit) {
    if ((word_.fetch_or(bit, std::memory_order_acq_rel) & kSleeping) != 0)
      base::futex_wake(word_, 1);
  }

  std::atomic<std::uint32_t> word_{0};  // atomic [event]: the same with two reasons to wake
};

}  // namespace magpie::sched
