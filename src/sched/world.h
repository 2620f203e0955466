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
// One at a time: try_begin() is the right to stop the world; a goroutine that does not get it yields and tries
//              again, so that it can itself be stopped.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/event.h"

namespace magpie::sched {

struct Runtime;
struct M;
struct P;

class World {
 public:
  // True: this M must call leave() (or yield) soon. Relaxed: a late answer only delays; what the world's stopper
  // changed is seen through the wake-up that ends the stop.
  bool stopping() const { return phase_.load(base::relaxed) != Phase::goes_on; }
  bool ending() const { return phase_.load(base::relaxed) == Phase::ending; }

  // The right to stop the world. Nobody gets it any more once the end wants it: many who change the world
  // without pause must not keep it from ending.
  bool try_begin() { return !end_wanted_.load(base::relaxed) && take_right(); }
  bool try_begin_end() {
    end_wanted_.store(true, base::relaxed);
    return take_right();
  }
  void end_begun() { busy_.store(false, base::release); }

  // Returns when no other M holds a P. `self` is the caller's M and keeps its P; null: a plain thread.
  // Only after try_begin().
  void stop(Runtime& rt, M* self);

  // All go on, on the first rt.procs Ps. `self` must hold one of those.
  void start(Runtime& rt, M* self);

  // The runtime ends: wakes everybody to leave. Only after try_begin_end(), so that nobody waits for a stop.
  void end(Runtime& rt);

  // An M that saw stopping() gives its P away and sleeps until it gets one. False: the runtime ends.
  [[nodiscard]] bool leave(Runtime& rt, M* m);

  // Ps that whoever stops the world still waits for.
  std::uint32_t still_held() const { return still_held_; }

  // A P that its holder gives up, while the world goes on or stops. Idle's lock is held.
  void take_back_locked(Runtime& rt, P* p);

 private:
  enum class Phase : std::uint8_t { goes_on, stopping, ending };

  bool take_right() {
    bool free = false;
    return busy_.compare_exchange_strong(free, true, base::acquire, base::relaxed);
  }

  base::Atomic<Phase> phase_{Phase::goes_on};  // atomic, unproven: written under Idle's lock
  base::Atomic<bool> busy_{false};             // atomic, a lock: the right to stop
  base::Atomic<bool> end_wanted_{false};       // atomic, a hint: a late answer only delays
  base::Event stopped_;
  base::Relaxed<std::uint32_t> still_held_ = 0;  // written under Idle's lock: Ps to wait for
};

}  // namespace magpie::sched
