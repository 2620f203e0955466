// select_word.h: a select waits on several channels. Exactly one of them, or the time, ends the
// wait.
//
// Protocol  [select]
//
//           a partner takes case k, or close() finds it
//     OPEN -----------------------------------------------> CASE k
//       \-------------------------------------------------> TIME IS UP
//           the deadline passes
//
// Sides     Before it sleeps, the select shows one record per case on the lists of its channels.
//           All records name one word. A partner that takes a record off a list, under that
//           channel's lock, has to win the word by a compare-exchange before it moves a value or
//           wakes the select. A partner that loses drops the record: the select is no partner any
//           more.
// Once      OPEN is left once. So one value moves, and the winner alone wakes the select.
// After     The select takes the lock of each channel in turn and takes its remaining records off
//           the lists, O(1) each. Having held each lock once, it knows that the step which released
//           them all after its registers were saved is over. So its stack may go.
// Orders    [select] value and result are written under the lock of the winner's channel, and reach
//           the select with its wake-up. The word orders nothing, but is acq_rel, so that the index
//           does not depend on that.
// Proof     tests/model/select_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace magpie::chan {

class SelectWord {
 public:
  static constexpr std::uint32_t kTimeIsUp = 0xFFFF'FFFE;

  // True: the caller ends the wait, with this case or kTimeIsUp.
  [[nodiscard]] bool try_win(std::uint32_t index) {
    std::uint32_t open = kOpen;
    return word_.compare_exchange_strong(open, code(index), base::acq_rel, base::relaxed);
  }
  // Whether try_win() may still succeed.
  bool is_open() const { return word_.load(base::relaxed) == kOpen; }  // relaxed: only a hint
  // After the wait: what ended it.
  std::uint32_t winner() const { return word_.load(base::acquire) - 1; }

 private:
  static constexpr std::uint32_t kOpen = 0;
  static std::uint32_t code(std::uint32_t index) { return index + 1; }

  base::Atomic<std::uint32_t> word_{kOpen};  // atomic [select]
};

}  // namespace magpie::chan
