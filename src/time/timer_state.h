// timer_state.h: a timer that users hold. Its value goes to a channel, or it starts a goroutine.
//
//   Handles share it. While it is armed or fires, it lives on without any. How handles and firer
//   agree: [timer-firing], firing.h. stop() and reset() take back from the channel a value that
//   nobody has received, also that of an earlier tick while the next one fires. A timer whose time
//   never comes is in no set, and still counts as started (is_for_ever).
#pragma once

#include <cstdint>

#include <magpie/chan.h>
#include <magpie/time.h>

#include "base/annotations.h"
#include "base/atomic.h"
#include "base/lock.h"
#include "time/firing.h"
#include "timer/timer.h"

namespace magpie::detail {

struct TimerState : timer::Timer {
  TimerState(std::int64_t period, TimerCall its_call)
      : Timer(fire_state, drop_state),
        ticks(period != 0),
        call(std::move(its_call)),
        period_ns(period) {}

  bool stop();
  bool reset(DeadlineNs first,
             std::int64_t period);  // throws std::logic_error when no runtime runs
  Chan<TimePoint> channel();
  void last_handle_gone();

  bool calls() const { return call.call != nullptr; }

  // fixed after construction
  const bool ticks;
  const TimerCall call;

  base::Atomic<std::uint32_t> handles{1};  // atomic, references

  base::Lock lock;
  // guarded by lock
  std::int64_t period_ns MAGPIE_GUARDED_BY(lock);   // if it ticks
  Chan<TimePoint> values = Chan<TimePoint>::nil();  // made when somebody asks for it
  // When it fired before anybody asked; 0: it did not.
  std::int64_t unseen_ns MAGPIE_GUARDED_BY(lock) = 0;
  TimerFiring firing;        // [timer-firing]
  bool is_for_ever = false;  // it was started, for a time that never comes

 private:
  static void* fire_state(timer::Timer& timer);
  static void drop_state(timer::Timer& timer);

  bool stop_late();
  void fire_and_unlock() MAGPIE_RELEASES(lock);
  bool deliver_locked(std::int64_t now_ns) MAGPIE_REQUIRES(lock);
  bool take_back_locked() MAGPIE_REQUIRES(lock);
  [[nodiscard]] bool finish_and_unlock(bool dies) MAGPIE_RELEASES(lock);
  void wait_until_idle() const;
  void free_outside();
};

}  // namespace magpie::detail
