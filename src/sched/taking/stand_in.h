// stand_in.h: sysmon fires timers while no thread is to be had that could.
//
// Timers belong to Ps, and an M that holds a P fires them. At the limit on threads a P may lie idle
// although its timers are due: all threads are in calls that block, or wait with bound goroutines,
// or run other goroutines without ever coming to search. Then sysmon holds the idle P for a moment,
// as an M. It fires what is due in all Ps, and gives the P up again. So the goroutines that became
// ready go to the global queue, where running threads find them, and a bound one gets the P
// (do_without_thread).
//
// Inside  Sysmon is inside meanwhile, and keeps the rule of the inside like every M: firing neither
//         allocates nor waits for what user code may hold. The P has no holder that it could be
//         taken from.
// Ends    Sysmon is joined before timers and goroutines are dropped. If the world stops, the P goes
//         to the thread that stops it.
#pragma once

#include "sched/core/m.h"

namespace magpie::sched {

class StandIn {
 public:
  // Sysmon only. Does nothing if no P is idle.
  void fire_timers();

 private:
  M m_;  // sysmon's, while it holds a P
};

}  // namespace magpie::sched
