// outsider_gate.h: plain threads use the runtime while run() may be about to end.
//
// Protocol  [outsider]
//   outsider:  count + 1;  open?  -> use the runtime;  count - 1
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
  [[nodiscard]] bool enter() {
    if (!enter_unnoted()) return false;
    came_.store(true, base::relaxed);  // not before the look: open() would forget us
    return true;
  }
  // The same for a thread that anybody_came() does not count.
  [[nodiscard]] bool enter_unnoted() {
    inside_.fetch_add(1, base::seq_cst);
    if (!open_.load(base::seq_cst)) {
      exit();
      return false;
    }
    return true;
  }
  void exit() { inside_.fetch_sub(1, base::release); }

  // Since the gate was opened. Relaxed: the caller has no way to tell before from after.
  bool anybody_came() const { return came_.load(base::relaxed); }

  void open() {
    came_.store(false, base::relaxed);
    open_.store(true, base::seq_cst);
  }
  void close() { open_.store(false, base::seq_cst); }
  bool is_empty() const { return inside_.load(base::seq_cst) == 0; }

 private:
  base::Atomic<std::uint32_t> inside_{0};  // atomic [outsider]: outsiders write, run() reads
  base::Atomic<bool> came_{false};         // atomic, a hint: outsiders write
  base::Atomic<bool> open_{false};         // atomic [outsider]: run() writes, outsiders read
};

}  // namespace magpie::sched
