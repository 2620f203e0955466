// world_phase.h: the world goes on, stops or ends. How many Ps does the stopper still wait for?
//
// Protocol  [world]
//
//   stopper:  has the right;  lock;  phase = stopping, takes the idle Ps;
//             still held = all others;  unlock;  none? -> continues, else sleeps until the last P
//             is given up;   makes its changes;
//             lock;  phase = goes on, shares out the Ps;  unlock
//   holder:   looks at the phase before it looks for work, and gives its P up:
//             lock;  stopping? -> still held - 1, the last holder wakes the stopper;
//             goes on? -> the P is idle;  unlock
//   end:      has the right, for ever;  lock;  phase = ending, wakes all sleeping Ms;  unlock
//
// Nobody runs   A P is idle, held, or given to the stopper. It changes between these under one
//               lock. While the world stops, no M takes an idle P. So when none is still held, the
//               stopper has them all.
// Nobody lost   A holder that gives its P up goes on the list of sleeping Ms under the same lock.
//               So the stopper finds it when it starts the world.
// One at a time The right to stop is a lock that threads try and do not wait for: a thread that
//               does not get it can be stopped meanwhile. The end keeps the right. So no thread
//               sets the phase back, or waits for Ps whose holders have left for good.
// Orders        [world] the phase changes under Idle's lock and is read without it. A late answer
//               only delays: a thread that acts on it reads it again under the lock. The right is
//               taken with acquire and given back with release.
// Proof         tests/model/world_model.cc
#pragma once

#include <cstdint>

#include "base/annotations.h"
#include "base/atomic.h"
#include "base/event.h"
#include "sched/rest/idle_lock.h"

namespace magpie::sched {

class WorldPhase {
 public:
  // ---- anyone; relaxed: see above
  bool stopping() const { return phase_.load(base::relaxed) != Phase::goes_on; }
  bool ending() const { return phase_.load(base::relaxed) == Phase::ending; }
  std::uint32_t still_held() const { return still_held_.load(base::relaxed); }

  // ---- the right to stop the world. Once the end wants it, no other thread gets it: threads that
  // change the world without pause must not keep it from ending.
  bool try_lock() { return !end_wanted_.load(base::relaxed) && take_right(); }
  bool try_lock_for_end() {
    end_wanted_.store(true, base::relaxed);
    return take_right();
  }
  void unlock() { busy_.store(false, base::release); }

  // ---- under Idle's lock

  // The stopper calls begin_stop_locked() before it takes the idle Ps, then must_wait_locked() with
  // the number of Ps that others hold. True: wait_until_stopped() has to follow.
  void begin_stop_locked() MAGPIE_REQUIRES(idle_lock()) {
    phase_.store(Phase::stopping, base::relaxed);
  }
  [[nodiscard]] bool must_wait_locked(std::uint32_t held) MAGPIE_REQUIRES(idle_lock()) {
    still_held_.store(held, base::relaxed);
    return held != 0;
  }
  void start_locked() MAGPIE_REQUIRES(idle_lock()) { phase_.store(Phase::goes_on, base::relaxed); }
  void end_locked() MAGPIE_REQUIRES(idle_lock()) { phase_.store(Phase::ending, base::relaxed); }

  // The holder of a P gives it up. True: the stopper of the world has it. False: it is idle.
  [[nodiscard]] bool give_to_stopper_locked() MAGPIE_REQUIRES(idle_lock()) {
    if (phase_.load(base::relaxed) != Phase::stopping) return false;
    std::uint32_t held = still_held_.load(base::relaxed) - 1;
    still_held_.store(held, base::relaxed);
    if (held == 0) stopped_.set();
    return true;
  }

  // ---- the stopper, without the lock
  void wait_until_stopped() { stopped_.wait(); }

 private:
  enum class Phase : std::uint8_t { goes_on, stopping, ending };

  bool take_right() {
    bool free = false;
    return busy_.compare_exchange_strong(free, true, base::acquire, base::relaxed);
  }

  base::Atomic<Phase> phase_{Phase::goes_on};  // atomic [world]: written under Idle's lock
  base::Atomic<std::uint32_t> still_held_{0};  // atomic [world]: the same; Ps to wait for
  base::Atomic<bool> busy_{false};             // atomic [world]: the right to stop
  base::Atomic<bool> end_wanted_{false};       // atomic, a hint: a late answer only delays
  base::Event stopped_;
};

}  // namespace magpie::sched
