// join_word.h: a goroutine ends, one other waits for it, runs it itself, or lets it go. Two words.
//
// Protocol  [join]
//                   commit(waiter)             finish: the finisher must ready the waiter
//        OPEN ------------------------> waiter ---------------------------------------> DONE
//         |  \______ finish: nobody to wake ___________________________________________/
//         |  detach
//         +--------------> DETACHED ---- finish: the finisher frees the record ---> DONE
//
//   commit runs after the joiner's registers are saved (it is its park-commit step), so whoever reads the
//   waiter may resume it at once. commit and detach are refused in DONE: the joiner goes on, and owns the record.
//   Each arrow is one atomic exchange, so either the joiner finds DONE or the finisher finds the waiter.
//   A waiter whose context is over is withdrawn: waiter -> OPEN, unless the finisher was first and
//   wakes it. Whoever withdraws it may come before commit, and then waits for that ([cancel]). Two may
//   withdraw it, a canceller and a timer: a mark in the waiter's record tells the second that OPEN is
//   the word the first has left, and not that of a waiter that has yet to commit.
//
// Protocol  [claim]
//        QUEUED --meet_entry--> TAKEN          whoever dequeued it runs it
//           |
//           +----claim--> CLAIMED              the joiner runs it in place; a queue still holds an entry
//                           |  \__ meet_entry: the entry is gone ______ DROPPED
//               retire: the joiner is through                             |  retire: the joiner frees the record
//                           v
//                        RETIRED -- meet_entry: whoever met the entry frees the record
//
//   A claimed goroutine that blocks is readied like any other, and then is in the queues twice: once by the entry that
//   was left behind, once by right. The two look the same, and it does not matter which is met first: the first is
//   dropped, the second (now DROPPED) resumes it.
// Orders    [join] finish releases the result, commit's failure and is_done acquire it; commit releases the
//           saved context, finish acquires it. The mark orders nothing: whoever withdraws ends before the
//           waiter's record does ([cancel], Waiter::wait_until). [claim] acq_rel: run and free happen on different threads.
// Proof     tests/model/join_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace magpie::sched {

// In the record of one wait: somebody has withdrawn the waiter.
class WithdrawnMark {
 public:
  void set() { word_.store(true, base::relaxed); }           // relaxed: orders nothing
  bool is_set() const { return word_.load(base::relaxed); }  // relaxed: the same

 private:
  base::Atomic<bool> word_{false};  // atomic [join]: those who withdraw it
};

class JoinWord {
 public:
  // Before the goroutine starts: nobody else knows the record.
  void reset() { word_.store(kOpen, base::relaxed); }

  // The finisher's debt.
  enum class Owes { nothing, wake_waiter, free_record };

  [[nodiscard]] Owes finish(void*& waiter) {
    std::uintptr_t before = word_.exchange(kDone, base::acq_rel);
    if (before == kOpen) return Owes::nothing;
    if (before == kDetached) return Owes::free_record;
    waiter = reinterpret_cast<void*>(before);
    return Owes::wake_waiter;
  }

  bool is_done() const { return word_.load(base::acquire) == kDone; }

  // False: it is done already, do not sleep.
  [[nodiscard]] bool commit(void* waiter) {
    return leave_open(reinterpret_cast<std::uintptr_t>(waiter));
  }

  // By anyone, of a waiter that is about to commit or has: it does not wait any more. Of several
  // who withdraw it one is told yes.
  enum class Withdrawn { yes, no_woken, not_yet };
  [[nodiscard]] Withdrawn withdraw(void* waiter, WithdrawnMark& mark) {
    auto expected = reinterpret_cast<std::uintptr_t>(waiter);
    // acquire: with commit's release; whoever withdraws it resumes it
    if (word_.compare_exchange_strong(expected, kOpen, base::acq_rel, base::acquire)) {
      mark.set();
      return Withdrawn::yes;
    }
    return expected == kOpen && !mark.is_set() ? Withdrawn::not_yet : Withdrawn::no_woken;
  }

  // False: it is done already, the caller frees the record.
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
  // Before the goroutine starts: nobody else knows the record.
  void reset() { word_.store(kQueued, base::relaxed); }

  // What the one who took an entry from a queue does with it.
  enum class Entry { run, drop, free_record };

  [[nodiscard]] Entry meet_entry() {
    std::uint8_t now = word_.load(base::acquire);
    for (;;) {
      if (now == kTaken || now == kDropped) return Entry::run;
      std::uint8_t to = now == kQueued ? kTaken : kDropped;
      if (word_.compare_exchange_weak(now, to, base::acq_rel, base::acquire)) {
        if (now == kQueued) return Entry::run;
        return now == kRetired ? Entry::free_record : Entry::drop;
      }
    }
  }

  // A joiner took it and its entry has not been met: whoever takes the entry will find it useless.
  bool is_left_behind() const {
    std::uint8_t now = word_.load(base::relaxed);  // relaxed: a hint, meet_entry decides
    return now == kClaimed || now == kRetired;
  }

  // By the joiner. False: somebody else runs it.
  [[nodiscard]] bool claim() {
    std::uint8_t expected = kQueued;
    return word_.compare_exchange_strong(expected, kClaimed, base::acq_rel, base::relaxed);
  }

  // By the joiner, instead of claim(), when it removed the only entry itself.
  void take_removed() {
    word_.store(kTaken, base::relaxed);
  }  // relaxed: no other thread knows of it

  // The joiner is through with the record. True: it frees it; false: whoever meets the entry does.
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
