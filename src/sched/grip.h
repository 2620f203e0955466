// grip.h: does an M use its P right now, and how the P is taken from one that does not.
//
// Protocol  [grip]
//
//   M, entering the runtime:   inside = true;   light_fence();   read wants;  not 0 -> keep()
//   M, leaving it:             inside = false
//   taker (sysmon):            wants |= ASKED;  heavy_fence();   read inside
//                                 inside  -> wants &= ~ASKED: another time
//                                 outside -> ASKED becomes TAKEN, by compare-exchange: the P is the taker's
//   M, keep():                 ASKED -> removed, by compare-exchange: the P stays;   TAKEN -> the P is gone
//
// Goal      A goroutine that runs user code, however long, however stuck, needs no P. So its P can be taken
//           without its help, without a signal, and without any cost but two plain stores per entry.
// No both   M and taker each raise a flag and then read the other's with a full fence between (base/fence.h). So if
//           the taker reads outside, the M's next entry reads ASKED, or what became of it, and only one of the
//           two compare-exchanges on ASKED succeeds: either the M keeps the P, or the taker has it.
// Hand-over What the M did with the P happened before it left (release); the taker reads inside with acquire.
// Without   An M whose P was taken runs on until its next entry, where it gets another P or queues its goroutine.
// Takers    One at a time: sysmon.
// Orders    [grip] inside: release when lowered, acquire by the taker. wants: acq_rel where it changes hands.
// Proof     tests/model/grip_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/fence.h"

namespace magpie::sched {

class Grip {
 public:
  // ---- the M's thread

  // False: somebody wants something; see keep().
  [[nodiscard]] bool enter() {
    inside_.store(true, base::relaxed);  // relaxed: the fence orders it
    base::light_fence();                 // [grip] other side: is_outside_for_taker()
    return wants_.load(base::relaxed) == 0;
  }
  void leave() { inside_.store(false, base::release); }  // [grip] with the taker's acquire
  bool is_inside() const { return inside_.load(base::relaxed); }

  // Inside. True: the P is ours, and stays so until we leave.
  [[nodiscard]] bool keep() {
    std::uint32_t wants = wants_.load(base::acquire);
    while ((wants & kAsked) != 0) {
      if (wants_.compare_exchange_weak(wants, wants & ~kAsked, base::acq_rel, base::acquire))
        return true;
    }
    return (wants & kTaken) == 0;
  }

  // It has a P again.
  void has_p() { wants_.fetch_and(~kTaken, base::acq_rel); }

  // ---- anyone
  bool is_taken() const { return (wants_.load(base::acquire) & kTaken) != 0; }

  // ---- the taker: ask; then is_outside_for_taker() and confirm(), or withdraw()
  void ask() { wants_.fetch_or(kAsked, base::relaxed); }  // relaxed: the fence orders it
  [[nodiscard]] bool is_outside_for_taker() const {
    base::heavy_fence();                   // [grip] other side: enter()
    return !inside_.load(base::acquire);  // [grip] with leave()'s release
  }
  [[nodiscard]] bool confirm() {
    std::uint32_t wants = wants_.load(base::relaxed);
    while ((wants & kAsked) != 0) {
      if (wants_.compare_exchange_weak(wants, (wants & ~kAsked) | kTaken, base::acq_rel,
                                       base::relaxed))
        return true;
    }
    return false;
  }
  void withdraw() { wants_.fetch_and(~kAsked, base::relaxed); }

 private:
  static constexpr std::uint32_t kAsked = 1, kTaken = 2;

  base::Atomic<bool> inside_{true};        // atomic [grip]: the M writes, the taker reads
  base::Atomic<std::uint32_t> wants_{0};  // atomic [grip]: both
};

}  // namespace magpie::sched
