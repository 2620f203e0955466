// mutex_core.h: who holds a mutex, and what its owner owes to the waiters when it unlocks.
//
// Protocol  [mutex]
//
//      FREE <--> HELD --> CALL --> STARVING
//      One word. Each arrow is one compare-exchange, or a store under the list's lock.
//
//   FREE       Nobody holds the mutex.
//   HELD       An owner holds it, and gives it back by HELD -> FREE without looking further.
//   CALL       An owner holds it. To give it back, the owner takes the list's lock, stores FREE,
//              takes the first waiter off the list and wakes it. That waiter is *woken*, and
//              competes with newcomers. If one is woken already, the word goes back to HELD. An
//              owner may take it as CALL for no reason (<magpie/detail/short_way.h>).
//   STARVING   The first waiter has waited long. The owner hands the mutex over to it, so that the
//              word is never FREE in between.
//
//   The word goes up from HELD, and down from CALL and STARVING, only under the list's lock. At
//   most one waiter is woken at a time. While one is, newcomers on the list do not ask for CALL, so
//   that owners come and go at full speed. The woken waiter takes the lock. It takes the mutex, as
//   CALL if others wait; or it asks (for CALL, or for STARVING if it has waited long) and goes back
//   to the front of the list.
//
// No loss   Invariant, whenever the lock is free: if anybody is on the list, a waiter is woken, or
//           the word is CALL or STARVING. So the woken waiter or the owner will look at the list. A
//           waiter gets on the list in the same hold of the lock in which it found the mutex taken
//           and asked. An owner that misses the question has not given back yet: its HELD -> FREE
//           fails.
// Dropped   The end of run() drops goroutines on the list, a woken one, and one that was handed the
//           mutex and has not run yet; they tell nobody. The list forgets the first kind. The marks
//           of the other two tell of them (woken_mark.h). Plain threads on the list are told, and
//           do what the dropped goroutines would have done.
// Fair      STARVING ends when the list is empty, or when the new owner has waited for less than a
//           millisecond.
// Lifetime  The last touch of an unlock is HELD -> FREE, or the release of the lock while the
//           waiter that it will wake still waits. If the owner finds the list empty (time was up,
//           dropped), the word goes back to HELD, and so to HELD -> FREE.
// Orders    [mutex] FREE is stored with release and taken with acquire. A hand-over is ordered by
//           the wake-up. Asking is relaxed: the lock orders the list.
// Proof     tests/model/mutex_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace magpie::sync {

class MutexWord {
 public:
  using Word = base::Atomic<std::uint32_t>;

  enum Held : std::uint32_t { held = 1, call = 2, starving = 3 };

  // The public header has twins of these two, inlined.
  [[nodiscard]] static bool try_take(Word& word, Held as = held) {
    std::uint32_t expected = kFree;
    return word.compare_exchange_strong(expected, as, base::acquire, base::relaxed);
  }
  [[nodiscard]] static bool try_give_back(Word& word) {
    std::uint32_t expected = held;
    return word.compare_exchange_strong(expected, kFree, base::release, base::relaxed);
  }

  // Hints.
  static bool looks_free(const Word& word) { return word.load(base::relaxed) == kFree; }
  static bool looks_starving(const Word& word) { return word.load(base::relaxed) == starving; }

  // Under the lock. True: taken. False: somebody holds it, and has been asked for at least
  // `ask_for`.
  [[nodiscard]] static bool take_or_ask(Word& word, Held take_as, Held ask_for) {
    std::uint32_t now = word.load(base::relaxed);
    for (;;) {
      if (now == kFree) {
        if (word.compare_exchange_weak(now, take_as, base::acquire, base::relaxed)) return true;
      } else if (now >= ask_for ||
                 word.compare_exchange_weak(now, ask_for, base::relaxed, base::relaxed)) {
        return false;
      }
    }
  }

  // Under the lock, by the owner.
  enum class GivingBack {
    not_yet,        // nobody is to be woken: unlock the lock, then try_give_back
    wake_first,     // it is free: take the first off the list, it is the woken one
    hand_to_first,  // the first off the list owns it: hand_over
    was_free        // the caller's bug
  };
  enum class Waiters { none, some };  // none: also if one is woken, and will look at the others
  [[nodiscard]] static GivingBack give_back(Word& word, Waiters waiters) {
    switch (word.load(base::relaxed)) {  // relaxed: the caller holds the mutex
      case kFree:
        return GivingBack::was_free;
      case held:
        return GivingBack::not_yet;
      case call:
        if (waiters == Waiters::none) break;
        word.store(kFree, base::release);  // [mutex] with the taker's acquire
        return GivingBack::wake_first;
      default:
        if (waiters == Waiters::none) break;
        return GivingBack::hand_to_first;
    }
    word.store(held, base::relaxed);
    return GivingBack::not_yet;
  }
  static void hand_over(Word& word, Held as) { word.store(as, base::relaxed); }

  // Under the lock, when the list has become empty.
  static void stop_asking(Word& word) {
    if (word.load(base::relaxed) > held) word.store(held, base::relaxed);
  }

 private:
  static constexpr std::uint32_t kFree = 0;
};

}  // namespace magpie::sync
