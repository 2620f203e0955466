// long_calls.h: are calls of blocking() long, when others wait for the P? Then it is handed over at once.
//
// A guess from the last few: sysmon takes Ps from calls that are long. The first call that was handed over and came back
// soon says that they are short, or mixed, and it takes many long ones to forget it.
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace magpie::sched {

class LongCalls {
 public:
  bool are_usual() const { return count_.load(base::relaxed) >= kEnough; }

  // Sysmon took the P of one.
  void note_taken() {
    int now = count_.load(base::relaxed);
    if (now < kEnough) count_.store(now + 1, base::relaxed);
  }
  // One whose P was handed over has returned.
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
