// signal_word.h: a waiter is notified, or its time is up. One word in the waiter's record.
//
// Protocol  [signal]
//
//                 park                  withdraw
//     LISTED -----------> PARKED ------------------> WITHDRAWN
//        |                   |                       never notified: the notifier takes the next
//        | choose            | choose
//        v        park       v
//     CHOSEN -----------> CHOSEN_PARKED
//        |                   |
//        | finish            | finish: the notifier must wake it
//        v                   v
//     SIGNALLED <------------+                       park is refused: the waiter goes on by itself
//
//   A waiter is LISTED from before its lock is released. park is its commit step. The notifier
//   chooses it and takes it off the list, under the list's lock, and finishes afterwards. The
//   record of a chosen waiter stays: until finish the waiter can only park. cancel is LISTED ->
//   WITHDRAWN, by a waiter that does not want to wait after all.
//
// No loss   choose and withdraw are compare-exchanges on one word. So a notification goes to one
//           waiter, which returns notified, or on to the next on the list; a waiter that withdrew
//           has had none. park and finish are too: the waiter finds SIGNALLED, or the notifier
//           finds it parked.
// Commit    withdraw may come before park, from another thread. It waits for park (not_yet): as
//           soon as withdraw has succeeded, the waiter may go on and its record may be gone.
// Lifetime  What they wait for may be destroyed once all have been notified. So a chosen waiter
//           touches its record only. A waiter that withdrew takes itself off the list; it stays
//           there until then. ~CondVar waits for it, and for its release of the list's lock.
// Orders    [signal] acq_rel: the waiter sees what the notifier did, and the notifier sees the
//           waiter's saved context.
// Proof     tests/model/cond_var_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace magpie::sync {

class SignalWord {
 public:
  // By the waiter. False: it has been notified already.
  [[nodiscard]] bool park() { return move(kListed, kParked) || move(kChosen, kChosenParked); }

  // By the notifier. False: it has withdrawn.
  [[nodiscard]] bool choose() { return move(kListed, kChosen) || move(kParked, kChosenParked); }

  // By the notifier, of a waiter that it chose. True: wake it.
  [[nodiscard]] bool finish() { return word_.exchange(kSignalled, base::acq_rel) == kChosenParked; }

  // For the waiter, when time is up.
  enum class Withdrawn { yes, no_notified, not_yet };
  [[nodiscard]] Withdrawn withdraw() {
    std::uint8_t found = kParked;
    if (word_.compare_exchange_strong(found, kWithdrawn, base::acq_rel, base::acquire))
      return Withdrawn::yes;
    // What the exchange found: with a second look, a waiter that parks in between would seem
    // notified.
    return found == kListed ? Withdrawn::not_yet : Withdrawn::no_notified;
  }

  // By the waiter, instead of park. False: it is, or is about to be, notified: wait for
  // is_signalled.
  [[nodiscard]] bool cancel() { return move(kListed, kWithdrawn); }
  bool is_signalled() const { return word_.load(base::acquire) == kSignalled; }

  bool is_withdrawn() const { return word_.load(base::relaxed) == kWithdrawn; }

 private:
  static constexpr std::uint8_t kListed = 0, kParked = 1, kChosen = 2, kChosenParked = 3,
                                kSignalled = 4, kWithdrawn = 5;

  bool move(std::uint8_t from, std::uint8_t to) {
    return word_.compare_exchange_strong(from, to, base::acq_rel, base::acquire);
  }

  // atomic [signal]: the waiter, its timer, and notifiers
  base::Atomic<std::uint8_t> word_{kListed};
};

}  // namespace magpie::sync
