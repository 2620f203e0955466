// join_word.h: a goroutine ends. Another goroutine waits for it, runs it itself, or detaches it.
//
// Protocol  [join]
//                   commit(waiter)             finish: the finisher must ready the waiter
//        OPEN ------------------------> waiter ---------------------------------------> DONE
//         |  \______ finish: nobody to wake ___________________________________________/
//         |  detach
//         +--------------> DETACHED ---- finish: the finisher frees the record ---> DONE
//
//   commit runs after the joiner's registers are saved (it is the joiner's commit step). So the
//   finisher that reads the waiter may resume it at once. In DONE, commit and detach are refused:
//   the joiner continues, and owns the record.
//   Each arrow is one atomic exchange. So either the joiner finds DONE or the finisher finds the
//   waiter.
//   A waiter whose context is over is withdrawn: waiter -> OPEN, unless the finisher was first and
//   wakes it. The canceller may come before commit, and then waits for it ([cancel]). A canceller
//   and a timer may both withdraw the waiter. The first sets a mark in the waiter's record. So the
//   second knows what OPEN means: with the mark the waiter is withdrawn, without it the waiter has
//   yet to commit.
//
// Protocol  [claim]
//        QUEUED --meet_entry--> TAKEN      the M that dequeued it runs it
//           |
//           +----claim--> CLAIMED         the joiner runs it in place; a queue still holds an entry
//                           |  \__ meet_entry: the entry is gone __ DROPPED
//            retire: the joiner is through                             |  retire: the joiner frees
//                           v                                             the record
//                        RETIRED -- meet_entry: the M that met the entry frees the record
//
//   A claimed goroutine that blocks is readied like any other. Then it is in the queues twice: by
//   the entry that the joiner left behind, and by the entry of its waker. The two look the same,
//   and their order does not matter: the first is dropped, the second (now DROPPED) resumes it.
//   A stopped goroutine is different: it may hold a lock that all others need, and must not wait
//   behind them in a ring. The stopped line holds no entries that joiners left behind. So an M that
//   takes an entry from there resumes the goroutine, whatever the claim says, and the entry that
//   was left behind stays useless.
// Orders    [join] finish releases the result; a commit that fails and is_done acquire it. commit
//           releases the saved context, finish acquires it. The mark orders nothing: canceller and
//           timer are through with the waiter's record before it ends ([cancel],
//           Waiter::wait_until). [claim] acq_rel: run and free happen on different threads.
// Proof     tests/model/join_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace magpie::sched {

// In the record of one wait: a canceller or a timer has withdrawn the waiter.
class WithdrawnMark {
 public:
  void set() { word_.store(true, base::relaxed); }           // relaxed: orders nothing
  bool is_set() const { return word_.load(base::relaxed); }  // relaxed: the same

 private:
  base::Atomic<bool> word_{false};  // atomic [join]: canceller and timer
};

class JoinWord {
 public:
  // Call this before the goroutine starts: no other thread knows the record.
  void reset() { word_.store(kOpen, base::relaxed); }

  // What the finisher owes.
  enum class Owes { nothing, wake_waiter, free_record };

  [[nodiscard]] Owes finish(void*& waiter) {
    std::uintptr_t before = word_.exchange(kDone, base::acq_rel);
    if (before == kOpen) return Owes::nothing;
    if (before == kDetached) return Owes::free_record;
    waiter = reinterpret_cast<void*>(before);
    return Owes::wake_waiter;
  }

  bool is_done() const { return word_.load(base::acquire) == kDone; }

  // False: the goroutine is done already, do not sleep.
  [[nodiscard]] bool commit(void* waiter) {
    return leave_open(reinterpret_cast<std::uintptr_t>(waiter));
  }

  // Anyone may call this for a waiter that has committed or is about to. The waiter waits no
  // longer. If several callers withdraw it, one of them gets `yes`.
  enum class Withdrawn { yes, no_woken, not_yet };
  [[nodiscard]] Withdrawn withdraw(void* waiter, WithdrawnMark& mark) {
    auto expected = reinterpret_cast<std::uintptr_t>(waiter);
    // acquire: with commit's release. The caller resumes the waiter.
    if (word_.compare_exchange_strong(expected, kOpen, base::acq_rel, base::acquire)) {
      mark.set();
      return Withdrawn::yes;
    }
    return expected == kOpen && !mark.is_set() ? Withdrawn::not_yet : Withdrawn::no_woken;
  }

  // False: the goroutine is done already, and the caller frees the record.
  [[nodiscard]] bool detach() { return leave_open(kDetached); }

 private:
  static constexpr std::uintptr_t kOpen = 0, kDone = 1, kDetached = 2;

  bool leave_open(std::uintptr_t to) {
    std::uintptr_t expected = kOpen;
    return word_.compare_exchange_strong(expected, to, base::acq_rel, base::acquire);
  }

  base::Atomic<std::uintptr_t> word_{kOpen};  // atomic [join]
};

class ClaimWord {
 public:
  // Call this before the goroutine starts: no other thread knows the record.
  void reset() { word_.store(kQueued, base::relaxed); }

  // What an M does with an entry that it took from a queue.
  enum class Fate { run, drop, free_record };

  [[nodiscard]] Fate meet_entry() {
    std::uint8_t now = word_.load(base::acquire);
    for (;;) {
      if (now == kTaken || now == kDropped) return Fate::run;
      std::uint8_t to = now == kQueued ? kTaken : kDropped;
      if (word_.compare_exchange_weak(now, to, base::acq_rel, base::acquire)) {
        if (now == kQueued) return Fate::run;
        return now == kRetired ? Fate::free_record : Fate::drop;
      }
    }
  }

  // A joiner claimed it and no M has met its entry. The M that takes the entry will find it
  // useless.
  bool is_left_behind() const {
    std::uint8_t now = word_.load(base::relaxed);  // relaxed: a hint, meet_entry decides
    return now == kClaimed || now == kRetired;
  }

  // The joiner calls this. False: another M runs it.
  [[nodiscard]] bool claim() {
    std::uint8_t expected = kQueued;
    return word_.compare_exchange_strong(expected, kClaimed, base::acq_rel, base::relaxed);
  }

  // The joiner calls this instead of claim() when it removed the only entry itself. Relaxed: no
  // other thread knows of it.
  void take_removed() { word_.store(kTaken, base::relaxed); }

  // The joiner is through with the record. True: the joiner frees it. False: the M that meets the
  // entry does.
  [[nodiscard]] bool retire() {
    std::uint8_t now = word_.load(base::acquire);
    if (now == kTaken) return true;  // nothing was left behind
    return word_.exchange(kRetired, base::acq_rel) == kDropped;
  }

 private:
  static constexpr std::uint8_t kQueued = 0, kTaken = 1, kClaimed = 2, kDropped = 3, kRetired = 4;

  base::Atomic<std::uint8_t> word_{kQueued};  // atomic [claim]: joiner and dequeuers
};

}  // namespace magpie::sched
