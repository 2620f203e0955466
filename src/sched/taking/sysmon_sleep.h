// sysmon_sleep.h: sysmon sleeps without end while nobody needs it. The next M that may need it
// wakes it.
//
// Protocol  [sysmon-sleep]
//
//   Sysmon sleeps while a P is idle, no goroutine waits in a queue or an inbox, an M has the timer
//   duty for every timer, and every M that holds a P is outside the runtime. None of this can
//   change before an M takes the idle P.
//
//   sysmon:   asleep = true;  heavy_fence();  counts the idle Ps;  heavy_fence();
//             looks at the holders, the queues, the timer duty
//             all still so? -> sleeps                                        (sleep_unless_needed)
//   taker:    takes a P off the idle list (the count of idle Ps changes);  light_fence();
//             reads asleep; true -> wakes sysmon
//
// Takers    begin_with(), for an M that begins to hold a P. World::stop(), which also wakes sysmon
//           if it has to wait. World::start(), after it has counted the idle Ps anew.
//           do_without_thread(), when a P stays idle although goroutines wait.
// No loss   Taker and sysmon each write, then read what the other wrote, with a full fence between.
//           So either the taker sees that sysmon sleeps, or sysmon sees that the P is gone.
// Inside    An M that is inside may have looked for an idle P before there was one. It may be about
//           to put goroutines where only it finds them, or to give up the timer duty. So sysmon
//           counts: every P is idle, or its holder is outside. A P that is neither is on its way to
//           an M that will read asleep. An M that enters after the second fence passes the fence of
//           its entry ([grip]). It finds the idle P that sysmon has counted, or that P has been
//           taken.
// Holders   A goroutine that blocks its thread holds a P, but does not keep sysmon awake: a
//           goroutine that waits gets the idle P.
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

  // Sysmon's part. is_needed(idle) looks at everything else. sleep() returns when a taker has woken
  // sysmon.
  template <class CountIdle, class IsNeeded, class Sleep>
  void sleep_unless_needed(CountIdle count_idle, IsNeeded is_needed, Sleep sleep) {
    asleep_.store(true, base::relaxed);
    base::heavy_fence();  // [sysmon-sleep] other side: is_asleep()
    auto idle = count_idle();
    base::heavy_fence();  // [sysmon-sleep] other side: Grip::enter()
    if (!is_needed(idle)) sleep();
    asleep_.store(false, base::relaxed);  // relaxed: a taker that wakes sysmon in vain does no harm
  }

 private:
  base::Atomic<bool> asleep_{false};  // atomic [sysmon-sleep]: sysmon writes, takers read
};

}  // namespace magpie::sched
