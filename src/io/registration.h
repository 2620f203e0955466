// registration.h: in which slot of the poller a descriptor's events arrive, and in which run().
//
// Protocol  [registration]
//
//   registrar, under the descriptor's lock:
//                slot = none;  generation = this run()'s;  slot = the new one
//   users, without the lock:
//                is the generation this run()'s?  -> the slot
//   a closer, or a mover of a deadline, after it said so:
//                lock;  look for the slot;  unlock;  wake the waiter there
//
// Run       A descriptor may outlive its run(), and the slots of that run() with it. The slot is
//           none before the generation changes, and users read it after the generation: so a user
//           finds a slot of its own run(), or none. Its run() does not end while it looks
//           (presence.h).
// No loss   The registrar tries again before it sleeps. If its hold of the lock came first, the
//           other finds the slot and sets its word ([readiness]). Else the other's hold came first,
//           and the registrar sees what it said when it tries again.
// Orders    [registration] generation and slot are stored with release and loaded with acquire.
// Proof     tests/model/descriptor_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "poll/slot.h"

namespace magpie::io {

class Registration {
 public:
  // Null: there is none in that run(), which goes on meanwhile.
  poll::Slot* slot_in(std::uint64_t generation) const {
    if (generation_.load(base::acquire) != generation) return nullptr;  // before the slot
    return slot_.load(base::acquire);
  }
  // 0: none, or it was forgotten.
  std::uint64_t generation() const { return generation_.load(base::acquire); }

  // Under the descriptor's lock.
  void set_locked(poll::Slot* slot, std::uint64_t generation) {
    slot_.store(nullptr, base::relaxed);  // relaxed: the generation releases it
    generation_.store(generation, base::release);
    slot_.store(slot, base::release);
  }
  void forget_locked() { set_locked(nullptr, 0); }

 private:
  base::Atomic<poll::Slot*> slot_{nullptr};    // atomic [registration]
  base::Atomic<std::uint64_t> generation_{0};  // atomic [registration]
};

}  // namespace magpie::io
