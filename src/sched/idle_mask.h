// idle_mask.h: which Ps are idle, a bit each, so that thieves and sleepers pass them by. An idle P
// has no goroutines.
//
// Part of [search-or-sleep]
//
//   taker:    takes a P off the idle list and clears its bit, under Idle's lock;  then publishes
//   sleeper:  its own P is counted as idle;  heavy_fence();  looks at the Ps whose bit is not set
//
// No loss   Before an M publishes with a P, the bit of the P is cleared. So the clearing comes
//           before the publisher's fence too. If the publisher does not see the sleeper's idle P,
//           the sleeper's fence is the later one, and the sleeper sees the bit cleared. The bit is
//           set when the queues of the P are empty.
// Large     Only the first kPs have bits. All others count as busy.
// Orders    Writers hold Idle's lock. Reads are relaxed: the fences order them.
#pragma once

#include <bit>
#include <cstdint>

#include "base/atomic.h"

namespace magpie::sched {

class IdleMask {
 public:
#ifdef MAGPIE_MODEL
  static constexpr std::uint32_t kPs = 64;
#else
  static constexpr std::uint32_t kPs = 4096;
#endif

  // Under Idle's lock.
  void set(std::uint32_t p) {
    if (p < kPs) write(p, word(p) | bit(p));
  }
  void clear(std::uint32_t p) {
    if (p < kPs) write(p, word(p) & ~bit(p));
  }

  // The first P from `first` on, and before `end`, that is not idle, or is; `end`: there is none.
  std::uint32_t next_busy(std::uint32_t first, std::uint32_t end) const {
    return next(first, end, ~std::uint64_t{0});
  }
  std::uint32_t next_idle(std::uint32_t first, std::uint32_t end) const {
    std::uint32_t found = next(first, end < kPs ? end : kPs, 0);
    return found < kPs ? found : end;
  }

 private:
  static constexpr std::uint32_t kBits = 64;

  static std::uint64_t bit(std::uint32_t p) { return std::uint64_t{1} << p % kBits; }
  std::uint64_t word(std::uint32_t p) const { return words_[p / kBits].load(base::relaxed); }
  void write(std::uint32_t p, std::uint64_t word) { words_[p / kBits].store(word, base::relaxed); }

  // The first whose bit, changed by `flip`, is 1.
  std::uint32_t next(std::uint32_t first, std::uint32_t end, std::uint64_t flip) const {
    while (first < end && first < kPs) {
      std::uint64_t left = (word(first) ^ flip) >> first % kBits;
      if (left != 0) {
        std::uint32_t found = first + static_cast<std::uint32_t>(std::countr_zero(left));
        return found < end ? found : end;
      }
      first += kBits - first % kBits;
    }
    return first < end ? first : end;
  }

  // atomic [search-or-sleep]: written under Idle's lock, read by thieves and sleepers
  base::Atomic<std::uint64_t> words_[kPs / kBits] = {};
};

}  // namespace magpie::sched
