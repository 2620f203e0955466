// age.h: for how long goroutines have waited, without writing a time at each park.
//
// Each look at all goroutines (a dump, or the watchdog's) leaves a mark beside the wait reason of
// those that wait. The next park() overwrites it. So a mark that a later look still finds belongs
// to the same wait: the goroutine has waited since the marking look at least. A mark is three bits:
//     0       no look has seen this wait
//     1 to 7  the number of a look
// A new look takes a number that no goroutine had in the look before. If there is none, two looks
// become one: the later stands for both, and the new look changes the marks of the earlier. They
// are chosen so that what is said of a wait stays a good part of the truth, however often somebody
// looks. It is never more than the truth.
//
// The mark is set by compare-exchange from what was read. If the goroutine has parked again since,
// its reason has no mark: the exchange fails, or it marks the new wait, as it should.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "sched/core/g.h"

namespace magpie::sched {

// Guarded by Snapshot's lock.
class Ages {
 public:
  void begin_look(std::int64_t now_ns) {
    now_ns_ = now_ns;
    retired_ = 0;
    if (newest_ != 0 && now_ns - times_[newest_] < kShortestNs) return;  // these looks are one
    int number = unused();
    if (number == 0) {
      number = retired_ = cheapest_to_retire();
      later_ = next_after(retired_);
      seen_first_[later_] = seen_first_[retired_];
    }
    times_[number] = seen_first_[number] = now_ns;
    newest_ = number;
    std::fill(std::begin(users_), std::end(users_), 0);
  }

  // How long g, which waits, has waited at least; -1: no look has seen this wait before. Marks it.
  std::int64_t look_at(G& g) {
    WaitReason found = g.wait_reason.load(base::relaxed);
    auto byte = static_cast<std::uint8_t>(found);
    int mark = byte >> kMarkShift;
    int next = mark == 0 ? newest_ : mark == retired_ ? later_ : mark;
    if (next != mark) {
      auto marked = static_cast<WaitReason>((byte & kReasonBits) | next << kMarkShift);
      g.wait_reason.compare_exchange_strong(found, marked, base::relaxed);
    }
    ++users_[next];
    return mark == 0 ? -1 : now_ns_ - times_[next];
  }

 private:
  static constexpr int kNumbers = 7;
  static constexpr std::int64_t kShortestNs = 1'000'000;

  int unused() const {
    for (int n = 1; n <= kNumbers; ++n) {
      if (users_[n] == 0) return n;
    }
    return 0;
  }
  // Of the looks that came after n's, the first.
  int next_after(int n) const {
    int next = 0;
    for (int m = 1; m <= kNumbers; ++m) {
      if (times_[m] > times_[n] && (next == 0 || times_[m] < times_[next])) next = m;
    }
    return next;
  }
  // What would be said of its longest wait, if the next one stood for it, is the least untrue.
  int cheapest_to_retire() const {
    int cheapest = 0;
    double least = 0;
    for (int n = 1; n <= kNumbers; ++n) {
      int next = next_after(n);
      if (next == 0) continue;  // the newest
      double untruth = static_cast<double>(now_ns_ - seen_first_[n]) /
                       static_cast<double>(now_ns_ - times_[next]);
      if (cheapest == 0 || untruth < least) cheapest = n, least = untruth;
    }
    return cheapest;
  }

  std::int64_t times_[kNumbers + 1] = {};
  std::int64_t seen_first_[kNumbers + 1] = {};  // by the earliest look that it stands for
  std::size_t users_[kNumbers + 1] = {};        // goroutines with that mark, in the last look
  int newest_ = 0;
  int retired_ = 0, later_ = 0;  // while a look changes marks: from the one to the other
  std::int64_t now_ns_ = 0;
};

}  // namespace magpie::sched
