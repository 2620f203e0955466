// firing.h: the handles of a timer and its firer agree on what happens to it.
//
// Protocol  [timer-firing]
//   A record that was taken out of its set ([timer]) belongs to its firer, until the firer makes it
//   idle or puts it into a set again. The following is guarded by the timer's lock, which both
//   sides take.
//
//                        fire: no word was left, it delivers
//     UNDECIDED ------------------------------------------------> DECIDED -- unlock, idle
//         |  ^                                                       ^
//         |  | fire: the word says when instead: into a set          | fire: the word says never
//         |  +---------------------- WORD LEFT ----------------------+
//         +--- stop, reset: leave word ---^ |  stop, reset: change the word
//                                         +-+
//
//   stop, reset   Not firing: the set's lock decided. UNDECIDED or WORD LEFT: they leave word, in
//                 time. DECIDED: too late, except for a value that nobody has received. reset waits
//                 until the record is idle: some instructions.
//   end of run()  Took the timer out of its set: DECIDED, whatever the word says.
//   last handle   Idle: frees the timer, behind the lock if it was ever put into a set again. In a
//                 set, UNDECIDED or WORD LEFT: *orphans* it, and the last firer frees it. DECIDED:
//                 waits until it is idle, and frees it.
//
// Once      One side frees it: `orphaned` and `decided` are set and read under the lock. So the
//           last handle finds it decided and the firer has found it not orphaned, or the other way
//           round.
// Lifetime  If the timer is not orphaned, the firer touches nothing after making the record idle,
//           and the last handle waits until then. But a firer that puts it into a set again still
//           has to release the lock, while a stop() without the lock may take it out of the set. So
//           the last handle takes the lock before it frees the timer.
// Orders    The lock's; idle is [timer]'s.
// Proof     tests/model/timer_firing_model.cc
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "timer/timer.h"

namespace magpie::detail {

// Guarded by the timer's lock. `kNever`: not at all.
class TimerFiring {
 public:
  static constexpr std::int64_t kNever = timer::kNever;

  // ---- by handles, when the timer was found firing

  // False: too late.
  bool may_leave_word() const { return !decided_; }
  // It does not fire now, but then. True: it would have fired, now or later.
  bool leave_word(std::int64_t instead_ns) {
    bool was_active = !cancelled_ || instead_ns_ != kNever;
    cancelled_ = true;
    instead_ns_ = instead_ns;
    return was_active;
  }

  // ---- by handles, before the idle timer is armed again
  void begin() { decided_ = false; }

  // ---- by the last handle

  // Without the lock, for an idle timer: its firer may still have to release the lock.
  bool was_rearmed() const { return rearmed_; }
  // True: the firer frees it.
  [[nodiscard]] bool leave_to_firing(timer::TimerWord::View where) {
    bool will_be_met = where.set != nullptr || (where.firing && !decided_);
    if (will_be_met) orphaned_ = true;
    return will_be_met;
  }

  // ---- by the firer

  // When to fire instead; nullopt: no word was left.
  [[nodiscard]] std::optional<std::int64_t> take_word() {
    if (!cancelled_) return std::nullopt;
    cancelled_ = false;
    return std::exchange(instead_ns_, kNever);
  }
  // Before the firer puts it into a set again. Seen by the step that takes it out of there.
  void rearm() { rearmed_ = true; }
  // True: nobody holds it, the caller frees it. Else the caller unlocks and makes it idle, which is
  // its last touch.
  [[nodiscard]] bool decide() {
    decided_ = true;
    return orphaned_;
  }
  // The same for a timer that is in a set when its run() ends: a word that was left is not for the
  // next run().
  [[nodiscard]] bool drop() {
    (void)take_word();
    return decide();
  }
  // The thread that frees the record calls this, without the lock: decide() or drop() said so
  // before.
  bool is_left_to_free() const { return decided_ && orphaned_; }

 private:
  std::int64_t instead_ns_ = kNever;  // only if cancelled_
  bool cancelled_ = false;            // word was left
  bool decided_ = false;
  bool orphaned_ = false;
  bool rearmed_ = false;
};

}  // namespace magpie::detail
