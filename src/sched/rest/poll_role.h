// poll_role.h: which thread asks the poller for events. One at a time has the role.
//
// Protocol  [poll-role]
//
//     NOBODY --try_take(asks)----> ASKS ----+   an M with a P that found nothing, or sysmon:
//       |                                   |   does not block
//       +------try_take(sleeps)--> SLEEPS --+   an M without a P, on the list of sleeping Ms:
//       ^                                   |   blocks in the poller
//       +-------------give_back-------------+
//
//   sleeper:  its P is counted as idle ([search-or-sleep]), and it is listed;  heavy_fence();
//             try_take(sleeps);  under Idle's lock:
//               not listed any more: it was handed a P   -> give_back
//               listed  -> says that it sleeps in the poller;  blocks;  give_back;  under the lock:
//                 events, listed still, and a P is idle  -> takes the P and continues
//                 else  -> puts goroutines in the global queue, as a publisher; looks again
//   sysmon:   no thread has asked for long:
//               all Ps are held, or an idle P has no thread  -> try_take(asks), asks, give_back
//               in any case acts as a publisher: a P is idle, no M searches -> starts a searcher
//   thread:   a plain thread that waits: writes itself in the word ([readiness]);  light_fence();
//               no M sleeps in the poller  -> acts as a publisher
//   waker:    takes an M off the list, hands it a P, sets its event
//               the M said that it sleeps in the poller  -> interrupts the poller too ([interrupt])
//
// No loss   Events wait in the kernel until a thread asks. The holder of a P lets go of it
//           sometime, or sysmon asks in its place. The last M that goes to sleep finds the role in
//           one of three states. Free: the M takes it. Taken by an M that sleeps in the poller:
//           that M gets the events. Taken by sysmon: sysmon gives it back before it looks for an
//           idle P, with full fences on both sides. So sysmon sees the P of the last M and starts a
//           searcher, which asks, and then sleeps itself. An M that asks with a P has yet to go to
//           sleep.
// Handed    An M says that it sleeps in the poller under the lock under which a waker takes it off
//           the list. So the waker reads that and interrupts the poller, or the M finds that it is
//           not listed and does not block.
// Orders    [poll-role] try_take acquires, give_back releases: the role guards what the poller's
//           owner keeps. The fences order the rest.
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

  // Hints, unless the caller fences.
  bool is_free() const { return role_.load(base::relaxed) == Role::nobody; }
  bool somebody_sleeps() const { return role_.load(base::relaxed) == Role::sleeps; }

 private:
  base::Atomic<Role> role_{Role::nobody};  // atomic [poll-role]
};

}  // namespace magpie::sched
