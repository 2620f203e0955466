// long_calls.h: are calls of blocking() long, when others wait for the P? Then the goroutine hands
// its P over at once.
//
// A guess from the last few calls: sysmon takes Ps only from long ones. When a goroutine handed its
// P over and its call returned soon, calls are short, or mixed. After that it takes many long calls
// before goroutines hand over again.
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace magpie::sched {

class LongCalls {
 public:
  bool are_usual() const { return count_.load(base::relaxed) >= kEnough; }

  // Sysmon took the P of a call.
  void note_taken() {
    int now = count_.load(base::relaxed);
    if (now < kEnough) count_.store(now + 1, base::relaxed);
  }
  // A call whose P was handed over has returned.
  void note_length(std::int64_t ns) {
    if (ns < kShortNs) count_.store(-kPenalty, base::relaxed);
  }

 private:
  static constexpr int kEnough = 3;
  static constexpr int kPenalty = 30;
  static constexpr std::int64_t kShortNs = 50'000;  // a hand-over and back costs about that

  base::Atomic<int> count_{0};  // atomic, a hint: an update that gets lost does no harm
};

}  // namespace magpie::sched
