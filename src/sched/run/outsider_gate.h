// outsider_gate.h: plain threads use the runtime while run() may be about to end.
//
// Protocol  [outsider]
//   outsider:  count + 1;  open?  -> use the runtime;  count - 1
//              The same step counts the visits, for the detection of deadlocks (rest/deadlock.h).
//   run():     open = false;  wait until count is 0;  tear down
//
// No loss   Each side writes, then reads what the other wrote. So either the outsider finds the
//           gate closed, or run() finds the outsider.
// Orders    [outsider] these four are seq_cst. With less, both could read old values, and the
//           outsider would use what is being torn down. exit releases, is_empty acquires: the visit
//           is over before.
// Proof     tests/model/outsider_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace magpie::sched {

class OutsiderGate {
 public:
  // False: the gate is closed, and nothing is to exit.
  [[nodiscard]] bool enter() { return enter(kVisit + kInside); }
  // The same for a thread that visits() does not count.
  [[nodiscard]] bool enter_unnoted() { return enter(kInside); }
  void exit() { word_.fetch_sub(kInside, base::release); }

  // How often enter() was called so far, modulo 2^32. While it stands still, no outsider comes in
  // that is noted. Relaxed: a caller that knows an outsider to be gone sees its visits.
  std::uint32_t visits() const {
    return static_cast<std::uint32_t>(word_.load(base::relaxed) >> 32);
  }

  void open() { open_.store(true, base::seq_cst); }
  void close() { open_.store(false, base::seq_cst); }
  bool is_empty() const { return static_cast<std::uint32_t>(word_.load(base::seq_cst)) == 0; }

 private:
  static constexpr std::uint64_t kInside = 1;
  static constexpr std::uint64_t kVisit = std::uint64_t{1} << 32;

  bool enter(std::uint64_t as) {
    word_.fetch_add(as, base::seq_cst);
    if (!open_.load(base::seq_cst)) {
      exit();
      return false;
    }
    return true;
  }

  // How many are inside, and above that how many came.
  base::Atomic<std::uint64_t> word_{0};  // atomic [outsider]: outsiders write, run() reads
  base::Atomic<bool> open_{false};       // atomic [outsider]: run() writes, outsiders read
};

}  // namespace magpie::sched
