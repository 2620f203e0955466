// readiness.h: a goroutine waits until a descriptor is ready for reading, or for writing. One word for each direction.
//
// Protocol  [readiness]
//
//   EMPTY    nothing is known
//   READY    something has happened since the last look
//   record   of the one who waits; there is one at most
//
//            forget               begin_wait
//     READY --------> EMPTY --------------------> record --set--> READY, and whoever set it wakes the one who waited
//       ^_______________/ set
//
//   who waits:   forget();  look at the deadline, and whether it was closed;  try the system call
//                it would block?  begin_wait(), and sleep; or, as it is READY, begin again
//   poller:      an event has come:  set()
//   closer, or who moves a deadline:  say so where the first looks;  set()
//
// No loss   Edge-triggered events come once, after the descriptor has become ready. One that comes before forget() is seen by
//           the system call; one that comes after it leaves READY, so that begin_wait() fails, or finds the record.
//           The same with whatever was said before set(): the two meet in this word, in either order.
// Spurious  A set() too many costs one system call: events of a descriptor's former owner do no harm.
// Orders    [readiness] set() releases what was said; forget() and begin_wait() acquire it. begin_wait() releases the
//           record, set() acquires it.
// Proof     tests/model/readiness_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace magpie::poll {

class Readiness {
 public:
  // By anyone. Returns the record of the one who waited, whom the caller has to wake; null: nobody did.
  [[nodiscard]] void* set() {
    std::uintptr_t before = word_.exchange(kReady, base::acq_rel);
    return before <= kReady ? nullptr : reinterpret_cast<void*>(before);
  }

  // By the one who is about to try. True: something had happened.
  bool forget() {
    // relaxed: an event that comes right after this look is found by begin_wait()
    if (word_.load(base::relaxed) != kReady) return false;
    word_.exchange(kEmpty, base::acq_rel);
    return true;
  }

  // By the one who tried. False: something has happened meanwhile.
  [[nodiscard]] bool begin_wait(void* record) {
    std::uintptr_t expected = kEmpty;
    return word_.compare_exchange_strong(expected, reinterpret_cast<std::uintptr_t>(record),
                                         base::acq_rel, base::acquire);
  }

  // Hints.
  bool is_ready() const { return word_.load(base::relaxed) == kReady; }
  // acquire: if set() took the record, what its caller did before is seen
  bool somebody_waits() const { return word_.load(base::acquire) > kReady; }

  // A new owner; nobody else uses it yet, but for late events.
  void reset() { word_.store(kEmpty, base::relaxed); }

 private:
  static constexpr std::uintptr_t kEmpty = 0, kReady = 1;

  base::Atomic<std::uintptr_t> word_{kEmpty};  // atomic [readiness]
};

}  // namespace magpie::poll
