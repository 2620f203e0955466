// sysmon_sleep.h: sysmon sleeps without end while nobody needs it, and whoever may need it next wakes it.
//
// Protocol  [sysmon-sleep]  It sleeps while a P is idle, no goroutine waits in a queue or an inbox, every timer is watched
//                           over, and whoever holds a P is outside the runtime. Nothing of this can change unless somebody
//                           takes the idle P first.
//
//   sysmon:   asleep = true;  heavy_fence();  count the idle Ps;  heavy_fence();  look at the holders, the queues, the watch
//             all still so? -> sleep                                                              (sleep_unless_needed)
//   taker:    takes a P off the idle list (the count of idle Ps changes);  light_fence();  reads asleep; true -> wakes sysmon
//
// Takers    begin_with(), for whoever begins to hold a P; World::stop(), which wakes it in any case if it has to wait, and
//           World::start(), after the Ps that were idle have been counted anew; do_without_thread(), when a P stays idle
//           although goroutines wait.
// No loss   Taker and sysmon each write, then read what the other wrote, with a full fence between. So either the taker
//           sees that sysmon sleeps, or sysmon sees that the P is gone.
// Inside    An M that is inside may have looked for an idle P before there was one, and be about to put goroutines where
//           only it finds them, or to leave the watch. So sysmon counts: every P is idle, or its holder is outside. A
//           P that is neither is on its way to somebody who will read asleep. An M that comes in after the second fence
//           passes the fence of its entry ([grip]), and finds the idle P that sysmon has counted, or it is taken.
// Holders   A P that is held by a goroutine which blocks its thread does not keep sysmon awake: whoever waits gets the
//           idle one.
// Proof     tests/model/sysmon_model.cc
#pragma once

#include "base/atomic.h"
#include "base/fence.h"

namespace magpie::sched {

class SysmonSleep {
 public:
  // The taker's part.
  bool is_asleep() const {
    base::light_fence();  // [sysmon-sleep] after the P was taken; other side: sleep_unless_needed()
    return asleep_.load(base::relaxed);
  }

  // Sysmon's part. is_needed(idle) looks at everything else; sleep() returns when somebody has woken it.
  template <class CountIdle, class IsNeeded, class Sleep>
  void sleep_unless_needed(CountIdle count_idle, IsNeeded is_needed, Sleep sleep) {
    asleep_.store(true, base::relaxed);
    base::heavy_fence();  // [sysmon-sleep] other side: is_asleep()
    auto idle = count_idle();
    base::heavy_fence();  // [sysmon-sleep] other side: Grip::enter()
    if (!is_needed(idle)) sleep();
    asleep_.store(false, base::relaxed);  // relaxed: who wakes it in vain does no harm
  }

 private:
  base::Atomic<bool> asleep_{false};  // atomic [sysmon-sleep]: sysmon writes, takers read
};

}  // namespace magpie::sched
