// poll_role.h: who asks the poller for events. One at a time has the role.
//
// Protocol  [poll-role]
//
//              try_take(asks)                    an M with a P that found nothing, or sysmon: does not block
//     NOBODY -----------------> ASKS ----+
//       |  try_take(sleeps)              | leave
//       +--------------------> SLEEPS ---+------> NOBODY
//                                                an M without a P, on the list of sleeping ones: blocks in the poller
//
//   sleeper:   its P is counted as idle ([search-or-sleep]), and it is listed;  heavy_fence();  try_take(sleeps)
//              under Idle's lock: listed still?  -> "I sleep in the poller";   no -> leave: it was handed a P
//              blocks;  leave;  under Idle's lock: events, listed still, and a P idle?  -> takes the P and goes on
//              else its goroutines go to the global queue, as by a publisher; it goes back to its second look
//   sysmon:    nobody has asked for long:  if all Ps are held try_take(asks), asks, leaves;  in any case acts as a publisher:
//              is a P idle and nobody searches?  -> starts a searcher
//   a plain thread that waits for a descriptor:  tells the word ([readiness]);  light_fence();  reads the role: a sleeper?
//              -> done.  Else acts as a publisher
//   waker of an M that was listed:  takes it off the list and hands it a P;  sets its event;  did it say that it sleeps
//              in the poller?  -> interrupts that too ([interrupt])
//
// No loss   Events wait in the kernel until somebody asks. A P that is held is let go sometime, or sysmon asks in its
//           place. The last M that goes to sleep finds the role free and takes it; or taken by one that sleeps there; or
//           by sysmon, which let go of it before it looked for an idle P, with full fences on both sides: so it sees that
//           M's P and starts a searcher, which asks, and sleeps in its turn.
//           Who asks with a P has yet to go to sleep itself.
// Handed    An M says that it sleeps in the poller under the lock under which it is taken off the list. So its waker
//           reads that, and interrupts, or the M finds that it is not listed and does not block.
// Orders    [poll-role] taken by acquire, left by release: what the poller's owner keeps is the role's. The fences order
//           the rest.
// Proof     tests/model/poller_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace magpie::sched {

class PollRole {
 public:
  enum class Role : std::uint8_t { nobody, asks, sleeps };

  [[nodiscard]] bool try_take(Role role) {
    Role expected = Role::nobody;
    return is_free() && role_.compare_exchange_strong(expected, role, base::acquire, base::relaxed);
  }
  void leave() { role_.store(Role::nobody, base::release); }

  // Hints, but for those who fence.
  bool is_free() const { return role_.load(base::relaxed) == Role::nobody; }
  bool somebody_sleeps() const { return role_.load(base::relaxed) == Role::sleeps; }

 private:
  base::Atomic<Role> role_{Role::nobody};  // atomic [poll-role]
};

}  // namespace magpie::sched
