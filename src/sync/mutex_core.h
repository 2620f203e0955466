// mutex_core.h: who holds a mutex, and what whoever gives it back owes to those who wait.
//
// Protocol  [mutex]
//
//      FREE <--> HELD --> CALL --> STARVING       one word; each arrow one compare-exchange, or a store under the lock
//
//   FREE       nobody holds it.
//   HELD       somebody does, and gives it back by HELD -> FREE without looking further.
//   CALL       the same, but whoever gives it back takes the list's lock, makes it FREE, takes the first off the list
//              and wakes it: that one is *woken*, and competes with newcomers.
//   STARVING   the first on the list has waited long. Whoever gives it back hands it over: it is never FREE between.
//
//   The word goes up from HELD, and down from CALL and STARVING, only under the list's lock. There is at most one woken
//   at a time; while there is one, newcomers on the list do not ask for CALL, so that owners come and go at full speed. A
//   woken one takes the lock and either takes the mutex, as CALL if others wait, or asks (CALL, or
//   STARVING if it has waited long) and goes back to the front.
//
// No loss   Invariant, whenever the lock is free: if anybody is on the list, there is a woken one or the word is CALL or
//           STARVING. So somebody will look at the list: the woken one or the owner. A waiter gets on the list in the
//           same hold of the lock in which it found the mutex taken and asked; the owner, if it misses the question,
//           has not given back yet: its HELD -> FREE fails.
// Dropped   When run() ends, goroutines on the list, a woken one, and one that the mutex was handed to and that has not
//           run yet are dropped, and tell nobody. The list forgets them; the marks of the latter two say so
//           (woken_mark.h); plain threads on the list are told, and do what they would have done.
// Fair      STARVING is left when the list is empty or when the new owner has waited less than a millisecond.
// Lifetime  The last touch of who gives it back is HELD -> FREE, or the release of the lock while the one that it will
//           wake still waits. A list found empty (time was up, dropped) leads back to HELD, and so to HELD -> FREE.
// Orders    [mutex] FREE is stored with release and taken with acquire. A hand-over is ordered by the wake-up. What
//           asks is relaxed: the lock orders the list.
// Proof     tests/model/mutex_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace magpie::sync {

class MutexWord {
 public:
  using Word = base::Atomic<std::uint32_t>;

  enum Held : std::uint32_t { held = 1, call = 2, starving = 3 };

  // The public header does these two inline.
  [[nodiscard]] static bool try_take(Word& word) {
    std::uint32_t expected = kFree;
    return word.compare_exchange_strong(expected, held, base::acquire, base::relaxed);
  }
  [[nodiscard]] static bool try_give_back(Word& word) {
    std::uint32_t expected = held;
    return word.compare_exchange_strong(expected, kFree, base::release, base::relaxed);
  }

  // Hints.
  static bool looks_free(const Word& word) { return word.load(base::relaxed) == kFree; }
  static bool looks_starving(const Word& word) { return word.load(base::relaxed) == starving; }

  // Under the lock. True: taken. False: somebody holds it, and has been asked for at least `ask_for`.
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
    not_yet,        // nobody waits: unlock the lock, then try_give_back
    wake_first,     // it is free: take the first off the list, it is the woken one
    hand_to_first,  // the first off the list owns it: hand_over
    was_free        // the caller's bug
  };
  enum class Waiters { none, some };
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
