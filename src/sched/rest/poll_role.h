// poll_role.h: who asks the poller for events. One at a time has the role.
//
// Protocol  [poll-role]
//
//     NOBODY --try_take(asks)----> ASKS ----+   an M with a P that found nothing, or sysmon:
//       |                                   |   does not block
//       +------try_take(sleeps)--> SLEEPS --+   an M without a P, on the list of sleeping ones:
//       ^                                   |   blocks in the poller
//       +---------------leave---------------+
//
//   sleeper:  its P is counted as idle ([search-or-sleep]), and it is listed;  heavy_fence();
//             try_take(sleeps);  under Idle's lock:
//               not listed any more: it was handed a P   -> leave
//               listed  -> says that it sleeps in the poller;  blocks;  leave;  under Idle's lock:
//                 events, listed still, and a P is idle  -> takes the P and goes on
//                 else  -> puts goroutines in the global queue, as a publisher; looks again
//   sysmon:   nobody has asked for long:
//               all Ps are held, or there is no thread for an idle one  -> try_take(asks), asks, leave
//               in any case acts as a publisher: a P is idle, nobody searches -> starts a searcher
//   thread:   a plain one that waits: tells the word ([readiness]);  light_fence();
//               nobody sleeps in the poller  -> acts as a publisher
//   waker:    takes an M off the list, hands it a P, sets its event
//               it said that it sleeps in the poller  -> interrupts that too ([interrupt])
//
// No loss   Events wait in the kernel until somebody asks. A P that is held is let go sometime, or
//           sysmon asks in its place. The last M that goes to sleep finds the role free and takes
//           it; or taken by one that sleeps there; or by sysmon, which let go of it before it
//           looked for an idle P, with full fences on both sides: so it sees that M's P and starts
//           a searcher, which asks, and sleeps in its turn. Who asks with a P has yet to go to
//           sleep itself.
// Handed    An M says that it sleeps in the poller under the lock under which it is taken off the
//           list. So its waker reads that, and interrupts, or the M finds that it is not listed and
//           does not block.
// Orders    [poll-role] taken by acquire, left by release: what the poller's owner keeps is the
//           role's. The fences order the rest.
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
  void give_back() { role_.store(Role::nobody, base::release); }

  // Hints, but for those who fence.
  bool is_free() const { return role_.load(base::relaxed) == Role::nobody; }
  bool somebody_sleeps() const { return role_.load(base::relaxed) == Role::sleeps; }

 private:
  base::Atomic<Role> role_{Role::nobody};  // atomic [poll-role]
};

}  // namespace magpie::sched
