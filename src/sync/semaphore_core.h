// semaphore_core.h: a number of units, and the waiters for some of them.
//
// Protocol  [semaphore]
//   The word holds the free units and one bit, WAITERS, which is set while a waiter is on the list
//   or about to get there. acquire:  one compare-exchange, if there are enough units and WAITERS is
//   not set. Else, under the
//             list's lock: the same once more. If that fails, the exchange that finds it so sets
//             WAITERS; the waiter gets on the list and sleeps.
//   release:  one compare-exchange, if WAITERS is not set. Else, under the list's lock: puts the
//             units there; while there are enough for the first waiter, takes them for it and takes
//             it off the list; then wakes these waiters. Clears WAITERS if nobody is left.
//
// No loss   With WAITERS set only holders of the lock change the word. A waiter gets on the list in
//           the same hold of the lock in which it set the bit. So a later release serves the list,
//           and the waiter has seen an earlier one.
// Fair      Nobody takes units past the waiters: not by exchange (WAITERS), not under the lock (the
//           list is not empty). Units may lie idle while the first waiter waits for more.
// Dropped   The end of run() drops goroutines on the list, and goroutines that were served and have
//           not run yet; they tell nobody. The next holder of the lock puts their units back
//           (in_transit.h). Plain threads on the list are told to do that. A goroutine that is
//           dropped in a release has put its units there before.
// Lifetime  The last touch of a release is an exchange without WAITERS, or the release of the lock
//           while a waiter that it serves, or a first waiter that waits for more, has not returned.
//           If it finds the list empty (time was up, dropped), it goes back to the exchange.
// Orders    [semaphore] putting units there releases, taking them acquires. The wake-up orders what
//           a served waiter sees.
// Proof     tests/model/semaphore_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace magpie::sync {

class SemaphoreWord {
 public:
  using Word = base::Atomic<std::uint64_t>;

  static constexpr std::int64_t kMost = (std::int64_t{1} << 62) - 1;

  static constexpr std::uint64_t pack(std::int64_t units) {
    return static_cast<std::uint64_t>(units) << 1;
  }

  enum class Taken { yes, too_few, others_wait };

  // The public header has a twin of the usual case, inlined.
  [[nodiscard]] static Taken try_take(Word& word, std::int64_t units) {
    std::uint64_t now = word.load(base::relaxed);
    for (;;) {
      if ((now & kWaiters) != 0) return Taken::others_wait;
      if (now < pack(units)) return Taken::too_few;
      if (word.compare_exchange_weak(now, now - pack(units), base::acquire, base::relaxed))
        return Taken::yes;
    }
  }

  enum class Released {
    done,
    others_wait,  // nothing happened: put them there under the lock
    too_many      // nothing happened: there would be more than `most`
  };

  [[nodiscard]] static Released release(Word& word, std::int64_t units, std::int64_t most = kMost) {
    std::uint64_t now = word.load(base::relaxed);
    for (;;) {
      if (count_of(now) > most - units) return Released::too_many;
      if ((now & kWaiters) != 0) return Released::others_wait;
      if (word.compare_exchange_weak(now, now + pack(units), base::release, base::relaxed))
        return Released::done;
    }
  }

  // A hint.
  static bool looks_too_few(const Word& word, std::int64_t units) {
    return word.load(base::relaxed) < pack(units);
  }

  // ---- under the lock

  // Units that were taken for a goroutine that has been dropped since. Others may change the word,
  // as WAITERS may not be set.
  static void put_back_locked(Word& word, std::int64_t units) {
    if (units != 0) word.fetch_add(pack(units), base::release);
  }

  // On an empty list. False: WAITERS is set now, get on the list.
  [[nodiscard]] static bool take_or_ask(Word& word, std::int64_t units) {
    std::uint64_t now = word.load(base::relaxed);
    for (;;) {
      bool enough = now >= pack(units);
      std::uint64_t to = enough ? now - pack(units) : now | kWaiters;
      if (word.compare_exchange_weak(now, to, base::acquire, base::relaxed)) return enough;
    }
  }

  // With WAITERS nobody else changes the word, so loads and stores are enough.
  // False: there would be more than kMost.
  [[nodiscard]] static bool put_locked(Word& word, std::int64_t units) {
    std::uint64_t now = word.load(base::relaxed);
    if (count_of(now) > kMost - units) return false;
    word.store(now + pack(units), base::release);
    return true;
  }
  // For the first on the list. False: too few.
  [[nodiscard]] static bool take_locked(Word& word, std::int64_t units) {
    std::uint64_t now = word.load(base::relaxed);
    if (count_of(now) < units) return false;
    word.store(now - pack(units), base::release);
    return true;
  }
  // Nobody is on the list any more.
  static void clear_waiters(Word& word) {
    std::uint64_t now = word.load(base::relaxed);
    // release: later takers are ordered after the releases that put units there under the lock
    if ((now & kWaiters) != 0) word.store(now - kWaiters, base::release);
  }

 private:
  static constexpr std::uint64_t kWaiters = 1;

  static std::int64_t count_of(std::uint64_t word) { return static_cast<std::int64_t>(word >> 1); }
};

}  // namespace magpie::sync
