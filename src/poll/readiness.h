// readiness.h: a goroutine waits until a descriptor is ready for reading, or for writing. One word
// for each direction.
//
// Protocol  [readiness]
//
//   EMPTY    nothing is known
//   READY    something has happened since the last look
//   record   the waiter's record; there is one at most
//
//            forget               begin_wait
//     READY --------> EMPTY --------------------> record --set--> READY, and the caller of set()
//       ^_______________/ set                                     wakes the waiter
//
//   waiter:      forget();  reads the deadline, and whether it was closed;  tries the system call
//                it would block?  begin_wait(), and sleeps; or, as the word is READY, begins again
//   poller:      an event has come:  set()
//   closer, or the thread that moves a deadline:  writes that where the waiter reads it;  set()
//
// No loss   Edge-triggered events come once, after the descriptor has become ready. If an event
//           comes before forget(), the system call sees its cause. If it comes after forget(), it
//           leaves READY, so that begin_wait() fails, or it finds the record. The same holds for
//           everything written before set(): waiter and setter meet in this word, in either order.
// Spurious  A set() too many costs one system call. So events of a descriptor's former owner do no
//           harm.
// Orders    [readiness] set() releases what was written before; forget() and begin_wait() acquire
//           it. begin_wait() releases the record, set() acquires it.
// Proof     tests/model/readiness_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace magpie::poll {

class Readiness {
 public:
  // Anyone may call this. Returns the record of the waiter, which the caller has to wake; null:
  // nobody waited.
  [[nodiscard]] void* set() {
    std::uintptr_t before = word_.exchange(kReady, base::acq_rel);
    return before <= kReady ? nullptr : reinterpret_cast<void*>(before);
  }

  // The waiter calls this before it tries the system call. True: something had happened.
  bool forget() {
    // relaxed: begin_wait() finds an event that comes right after this look
    if (word_.load(base::relaxed) != kReady) return false;
    word_.exchange(kEmpty, base::acq_rel);
    return true;
  }

  // The waiter calls this after the system call would have blocked. False: something has happened
  // meanwhile.
  [[nodiscard]] bool begin_wait(void* record) {
    std::uintptr_t expected = kEmpty;
    return word_.compare_exchange_strong(expected, reinterpret_cast<std::uintptr_t>(record),
                                         base::acq_rel, base::acquire);
  }

  // Hints.
  bool is_ready() const { return word_.load(base::relaxed) == kReady; }
  // acquire: if set() took the record, this thread sees what its caller did before
  bool somebody_waits() const { return word_.load(base::acquire) > kReady; }

  // For a new owner. Nobody else uses it yet, except late events.
  void reset() { word_.store(kEmpty, base::relaxed); }

 private:
  static constexpr std::uintptr_t kEmpty = 0, kReady = 1;

  base::Atomic<std::uintptr_t> word_{kEmpty};  // atomic [readiness]
};

}  // namespace magpie::poll
