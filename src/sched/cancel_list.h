// cancel_list.h: waiters that wait for something, but no longer than until a context is over.
//
// Protocol  [cancel]
//
//                  add               take, by the canceller         withdraw said no: finish
//     NOT LISTED --------> LISTED -----------------------> FIRING -------------------> NOT LISTED
//         ^                  |                               |
//         +---- remove ------+                               | withdraw said yes
//                                                            v
//                                                        CANCELLED: the canceller wakes the waiter
//
//   A waiter is on two lists: the list of what it waits for, and this one. The first list alone
//   decides what ends its wait, under that list's lock, as with deadlines (Waiter::wait_until). A
//   partner takes the waiter off to serve it, or `withdraw` takes it off because the context is
//   over. Partners know nothing of contexts, so waits without a context pay nothing.
//
// Sides     add, remove: the waiter, before and after it waits.  end, take, fire: the canceller.
// Once      The first list's lock orders partner and withdraw: one of them finds the waiter there,
//           and wakes it. So a waiter keeps what it was given, and a cancelled waiter was given
//           nothing.
// No loss   add and end meet under the lock: take finds the waiter, or add tells it that it came
//           too late.
// Commit    The canceller may fire a waiter whose registers are not saved yet. withdraw waits for
//           the lock that the waiter's commit step releases, or for the waiter's own word.
// Lifetime  The record lies on the waiter's stack. After a cancelled waiter's wake-up the canceller
//           does not touch its record. A waiter that a partner woke removes its record: it takes it
//           off under the lock. If the canceller has taken the record already, the waiter waits for
//           finish, the canceller's last touch.
// Locks     A waiter adds itself while it holds the lock of the first list. The canceller holds no
//           lock when it fires.
// Orders    [cancel] finish releases, remove acquires. The rest is under the lock, or reaches the
//           waiter with its wake-up.
// Proof     tests/model/cancel_model.cc
#pragma once

#include "base/atomic.h"
#include "base/lock.h"
#include "sched/wait_list.h"

namespace magpie::sched {

// Whether a canceller still looks at a record that it has taken.
class FiringWord {
 public:
  void begin() { word_.store(true, base::relaxed); }    // relaxed: under the lock of the list
  void finish() { word_.store(false, base::release); }  // [cancel] with is_firing()
  bool is_firing() const { return word_.load(base::acquire); }  // [cancel] with finish()

 private:
  base::Atomic<bool> word_{false};  // atomic [cancel]: the canceller writes, the waiter reads
};

struct CancelRecord : WaitRecord {
  FiringWord firing;
  bool cancelled = false;  // the canceller writes it before it wakes the waiter
};

template <class Lock = base::Lock>
class CancelList {
 public:
  // False: the context is over already, and the record is not on the list.
  template <class Here>
  [[nodiscard]] bool add(CancelRecord& record, const Here& presence) {
    lock_.lock();
    bool alive = !over_;
    if (alive) list_.push(record, presence);
    lock_.unlock();
    return alive;
  }

  // A waiter that was not cancelled calls this. False: a canceller still looks at the record. Then
  // the waiter asks is_firing() until it is false.
  template <class Here>
  [[nodiscard]] bool remove(CancelRecord& record, const Here& presence) {
    lock_.lock();
    bool listed = list_.holds(record, presence);
    if (listed) list_.unlink(record);
    lock_.unlock();
    return listed || !record.firing.is_firing();
  }

  // No record is added from now on.
  void end() {
    lock_.lock();
    over_ = true;
    lock_.unlock();
  }

  // The next record to fire; null: none is left. The presence lasts until the record is fired.
  template <class Here>
  [[nodiscard]] CancelRecord* take(const Here& presence) {
    lock_.lock();
    auto* record = static_cast<CancelRecord*>(list_.take_first(presence));
    if (record != nullptr) record->firing.begin();
    lock_.unlock();
    return record;
  }

  // `withdraw()` true: nobody else has woken the waiter, or will. Then `wake()` does.
  template <class Withdraw, class Wake>
  static void fire(CancelRecord& record, Withdraw withdraw, Wake wake) {
    if (withdraw()) {
      record.cancelled = true;
      wake();
    } else {
      record.firing.finish();
    }
  }

 private:
  Lock lock_;
  // guarded by lock_
  bool over_ = false;
  WaitList list_;
};

}  // namespace magpie::sched
