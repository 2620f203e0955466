// grip.h: does an M use its P right now? How sysmon takes the P from an M that does not.
//
// Protocol  [grip]
//
//   the word:  OWN --ask--> ASKED --confirm--> TAKEN --set_own--> OWN
//                ^------------' keep, by the M, or withdraw, by the taker
//
//   M, entering the runtime:   inside = true;   light_fence();   read the word; not OWN -> keep()
//   M, leaving it:             inside = false
//   taker (sysmon):            OWN -> ASKED;    heavy_fence();   read inside
//                                 inside  -> withdraw: another time
//                                 outside -> confirm: the P is the taker's
//
// Goal      A goroutine that runs user code needs no P, however long it runs or blocks. So sysmon
//           can take its P without its help and without a signal. The cost is two plain stores per
//           entry.
// No both   M and taker each raise a flag and then read the other's, with a full fence between
//           (base/fence.h). If the taker reads outside, the M's next entry reads ASKED, or what
//           became of it. Only one of the compare-exchanges from ASKED succeeds: either the M keeps
//           the P, or the taker has it.
// Hand-over Everything that the M did with the P happened before it left (release). The taker reads
//           inside with acquire.
// Without   An M whose P was taken runs on until its next entry. There it gets another P or queues
//           its goroutine.
// Takers    One at a time: sysmon. It may leave the word at ASKED for a while, until the M's next
//           entry or until it withdraws: so it makes that entry a slow one (ask_to_give_way).
// Orders    [grip] inside: release when lowered, acquire by the taker. The word: acq_rel where the
//           P changes hands.
// Proof     tests/model/grip_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/fence.h"

namespace magpie::sched {

class Grip {
 public:
  // ---- the M's thread

  // False: sysmon wants the P, or has it; see keep().
  [[nodiscard]] bool enter() {
    inside_.store(true, base::relaxed);  // relaxed: the fence orders it
    base::light_fence();                 // [grip] other side: is_outside_for_taker()
    return word_.load(base::relaxed) == kOwn;
  }
  // The short way in. False: the M is inside already, or sysmon wants the P. Then take the long
  // way.
  [[nodiscard]] bool try_enter() {
    if (is_inside()) return false;
    if (enter()) [[likely]]
      return true;
    leave();
    return false;
  }
  void leave() { inside_.store(false, base::release); }  // [grip] with the taker's acquire
  bool is_inside() const { return inside_.load(base::relaxed); }

  // Inside. True: the P is ours, and stays ours until we leave.
  [[nodiscard]] bool keep() {
    std::uint32_t now = kAsked;
    return word_.compare_exchange_strong(now, kOwn, base::acq_rel, base::acquire) || now == kOwn;
  }

  // The M has a P again, or its goroutine is in a queue for one and the M does not run it.
  void set_own() { word_.store(kOwn, base::release); }
  // The M runs without a P after all.
  void set_taken() { word_.store(kTaken, base::release); }

  // ---- anyone
  bool is_outside() const { return !inside_.load(base::acquire); }  // [grip] with leave()'s release
  bool is_taken() const { return word_.load(base::acquire) == kTaken; }
  // Relaxed: a hint for goroutines that try again and again without entering.
  bool is_undisturbed() const { return word_.load(base::relaxed) == kOwn; }

  // ---- the taker: ask(); then is_outside_for_taker() and confirm(), or withdraw()

  // False: the M has no P.
  [[nodiscard]] bool ask() {
    std::uint32_t now = kOwn;
    return word_.compare_exchange_strong(now, kAsked, base::relaxed, base::relaxed);
  }
  [[nodiscard]] bool is_outside_for_taker() const {
    base::heavy_fence();                  // [grip] other side: enter()
    return !inside_.load(base::acquire);  // [grip] with leave()'s release
  }
  // False: the M keeps the P.
  [[nodiscard]] bool confirm() {
    std::uint32_t now = kAsked;
    return word_.compare_exchange_strong(now, kTaken, base::acq_rel, base::relaxed);
  }
  void withdraw() {
    std::uint32_t now = kAsked;
    (void)word_.compare_exchange_strong(now, kOwn, base::relaxed, base::relaxed);
  }

 private:
  static constexpr std::uint32_t kOwn = 0, kAsked = 1, kTaken = 2;

  base::Atomic<bool> inside_{true};         // atomic [grip]: the M writes, the taker reads
  base::Atomic<std::uint32_t> word_{kOwn};  // atomic [grip]: both
};

}  // namespace magpie::sched
