// age.h: for how long goroutines have waited, without writing a time at each park.
//
// Each look at all goroutines (a dump, or the watchdog's) leaves a mark beside the wait reason of
// those that wait. The next park() overwrites it. So a mark that a later look still finds belongs
// to the same wait: the goroutine has waited since the marking look at least. A mark is three bits:
//     0       no look has seen this wait
//     1       seen by a look that is long ago; its time is that of the latest such look
//     2 to 7  the number of the look; the next looks take them in turn
// A look that takes a number again first turns the marks with that number into 1.
//
// The mark is set by compare-exchange from what was read. If the goroutine has parked again since,
// its reason has no mark: the exchange fails, or it marks the new wait, as it should.
#pragma once

#include <cstdint>

#include "sched/core/g.h"

namespace magpie::sched {

// Guarded by Snapshot's lock.
class Ages {
 public:
  void begin_look(std::int64_t now_ns) {
    now_ns_ = now_ns;
    if (now_ns - times_[number_] < kShortestNs) return;  // these looks are one
    number_ = number_ == kLastNumber ? kFirstNumber : number_ + 1;
    if (times_[number_] != 0) times_[kLongAgo] = times_[number_];
    times_[number_] = now_ns;
    is_new_ = true;
  }
  void end_look() { is_new_ = false; }

  // How long g, which waits, has waited at least; -1: no look has seen this wait before. Marks it.
  std::int64_t look_at(G& g) {
    WaitReason found = g.wait_reason.load(base::relaxed);
    auto byte = static_cast<std::uint8_t>(found);
    int mark = byte >> kMarkShift;
    int next = mark == 0 ? number_ : mark == number_ && is_new_ ? kLongAgo : mark;
    if (next != mark) {
      auto marked = static_cast<WaitReason>((byte & kReasonBits) | next << kMarkShift);
      g.wait_reason.compare_exchange_strong(found, marked, base::relaxed);
    }
    return mark == 0 ? -1 : now_ns_ - times_[next];
  }

 private:
  static constexpr int kLongAgo = 1, kFirstNumber = 2, kLastNumber = 7;
  static constexpr std::int64_t kShortestNs = 1'000'000;

  std::int64_t times_[kLastNumber + 1] = {};
  int number_ = kLastNumber;
  bool is_new_ = false;
  std::int64_t now_ns_ = 0;
};

}  // namespace magpie::sched
