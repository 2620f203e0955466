// world.h: everybody stops, something that concerns all Ps is changed, everybody goes on.
//
// Stopping is asking: stopping() is looked at by every M before it looks for work and by yield(). An M that sees it
// leaves its P and sleeps. Whoever stopped the world then holds all Ps. The end of the runtime uses the
// same flag: an M that sees it then leaves for good.
//
//   goes on --stop--> stopping --last P left--> stopped --start--> goes on
//      |
//      +--end--> ending: every M leaves at its next look
//
// Waits for    goroutines that run: each until its next call into the runtime.
// One at a time: try_lock() is the right to stop the world; a goroutine that does not get it yields and tries
//              again, so that it can itself be stopped.
// How all agree on this, and where that is proven: world_phase.h, [world].
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
  // True: this M must call give_up_p() (or yield) soon. A late answer only delays; what the world's stopper
  // changed is seen through the wake-up that ends the stop.
  bool stopping() const { return phase_.stopping(); }
  bool ending() const { return phase_.ending(); }

  // The right to stop the world, and to end it.
  bool try_lock() { return phase_.try_lock(); }
  bool try_lock_for_end() { return phase_.try_lock_for_end(); }
  void unlock() { phase_.unlock(); }

  // Returns when no other M holds a P. `self` is the caller's M and keeps its P; null: a plain thread.
  // Only after try_lock().
  void stop(M* self);

  // All go on, on the first runtime->procs Ps. `self` must hold one of those.
  void start(M* self);

  // The runtime ends: wakes everybody to leave. Only after try_lock_for_end(), so that nobody waits for a stop.
  void shut_down();

  // An M that saw stopping() gives its P away and sleeps until it gets one. False: the runtime ends.
  [[nodiscard]] bool give_up_p(M* m);

  // Ps that whoever stops the world still waits for.
  std::uint32_t still_held() const { return phase_.still_held(); }

  // A P that its holder gives up, while the world goes on or stops.
  void take_back_locked(P* p) MAGPIE_REQUIRES(idle_lock());

 private:
  WorldPhase phase_;  // [world]
};

}  // namespace magpie::sched
