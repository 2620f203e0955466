// world.h: all Ms stop, something that concerns all Ps is changed, all Ms continue.
//
// Stopping is asking. Every M looks at stopping() before it looks for work, and so does yield(). An
// M that sees it gives its P up and sleeps. Then the thread that stopped the world holds all Ps.
// The end of the runtime uses the same flag: an M that sees it then leaves for good.
//
//   goes on --stop--> stopping --last P given up--> stopped --start--> goes on
//      |
//      +--shut_down--> ending: every M leaves at its next look
//
// Waits for    goroutines that run: each until its next call into the runtime.
// Right        try_lock() is the right to stop the world. One thread at a time has it. A goroutine
//              that does not get it yields and tries again, so that it can itself be stopped.
// How all threads agree on this, and where that is proven: world_phase.h, [world].
#pragma once

#include <cstdint>

#include "base/annotations.h"
#include "sched/rest/idle_lock.h"
#include "sched/run/world_phase.h"

namespace magpie::sched {

struct M;
struct P;

class World {
 public:
  // True: this M must call give_up_p() (or yield) soon. A late answer only delays. The M sees the
  // stopper's changes through the wake-up that ends the stop.
  bool stopping() const { return phase_.stopping(); }
  bool ending() const { return phase_.ending(); }

  // The right to stop the world, and to end it.
  bool try_lock() { return phase_.try_lock(); }
  bool try_lock_for_end() { return phase_.try_lock_for_end(); }
  void unlock() { phase_.unlock(); }

  // Returns when no other M holds a P. `self` is the caller's M and keeps its P; null: a plain
  // thread. Call this only after try_lock().
  void stop(M* self);

  // All Ms continue, on the Ps in use. `self` must hold one of them.
  void start(M* self);

  // The runtime ends: wakes all sleeping Ms, which leave. Call this only after try_lock_for_end(),
  // so that no thread waits for a stop.
  void shut_down();

  // An M that saw stopping() gives its P up and sleeps until it gets one. False: the runtime ends.
  [[nodiscard]] bool give_up_p(M* m);

  // The number of Ps that the stopper of the world still waits for.
  std::uint32_t still_held() const { return phase_.still_held(); }

  // The holder of p gives it up, while the world goes on or stops.
  void take_back_locked(P* p) MAGPIE_REQUIRES(idle_lock());

 private:
  WorldPhase phase_;  // [world]
};

}  // namespace magpie::sched
