// deadline_core.h: a deadline and its lazy timer agree when the timer looks again. Locks, clock and
// sets are the host's.
//
// Protocol  [deadline]
//
//   when    until when a caller may wait; anyone moves it at any time
//   armed   when the timer will look at `when`; never: it is in no set and will not. Both change
//           under one lock
//
//   mover:   when = new;  is armed later than that?
//              -> takes the timer out, puts it in for the new time, armed = new
//              -> it is being fired, and has not looked yet: it finds the new
//   timer:   looks:  passed         -> armed = never, wakes the waiter
//                    moved away     -> puts itself in again, armed = when
//                    none any more  -> armed = never
//   end of run():  the timer was taken out:  armed = never.  The first caller that registers in the
//                  next run() sets it again
//   owner, before its memory goes:  takes the timer out until it is idle. A firing timer may put
//                                   itself in again and still hold the lock: so takes it once
//
// No late   Whenever the lock is free: armed <= when, or `when` had passed as it was set, or no
//           runtime runs. And armed is not never exactly if the timer is in a set for that time, or
//           fires and has not looked yet.
// Orders    [deadline] the lock orders all. `when` is read without it: [readiness] tells the
//           waiter that it moved.
// Proof     tests/model/deadline_model.cc
#pragma once

#include <cstdint>
#include <mutex>

#include "base/atomic.h"
#include "base/cpu.h"
#include "timer/timer.h"

namespace magpie::io {

// A Host has now_ns(); arm(at_ns), false: there is no runtime; disarm(), true: it is being fired;
// is_firing(); finished() ([timer]); and call_passed(), which wakes the waiter and returns what
// became ready.
template <class Lock>
class DeadlineCore {
 public:
  std::int64_t when_ns() const { return when_ns_.load(base::relaxed); }

  template <class Host>
  void set(Host& host, std::int64_t deadline_ns) {
    std::lock_guard hold(lock_);
    when_ns_.store(deadline_ns, base::relaxed);
    if (deadline_ns < armed_ns_ && deadline_ns > host.now_ns()) arm_locked(host, deadline_ns);
  }

  // The timer fires.
  template <class Host>
  void* look(Host& host) {
    lock_.lock();
    std::int64_t when = when_ns();
    bool passed = when <= host.now_ns();
    void* ready = passed ? host.call_passed() : nullptr;
    if (passed || when == timer::kNever) {
      armed_ns_ = timer::kNever;
      lock_.unlock();
      host.finished();
    } else {
      armed_ns_ = when;
      (void)host.arm(when);  // under the lock: a mover must find it
      lock_.unlock();
    }
    return ready;
  }

  // The timer was taken out as its run() ended.
  template <class Host>
  void end(Host& host) {
    {
      std::lock_guard hold(lock_);
      armed_ns_ = timer::kNever;
    }
    host.finished();
  }

  // The owner calls this after it has taken the timer out for good: a firer that put the timer in
  // again may still hold the lock.
  void wait_for_lock_holder() {
    lock_.lock();
    lock_.unlock();
  }

  std::int64_t armed_ns_for_tests() const { return armed_ns_; }

 private:
  template <class Host>
  void arm_locked(Host& host, std::int64_t at_ns) {
    if (armed_ns_ != timer::kNever && host.disarm()) return;  // it looks
    while (host.is_firing()) base::cpu_relax();  // it has looked: some instructions are left
    // Without a runtime nobody waits.
    armed_ns_ = host.arm(at_ns) ? at_ns : timer::kNever;
  }

  base::Atomic<std::int64_t> when_ns_{timer::kNever};  // atomic [deadline]: written under lock_
  Lock lock_;
  // guarded by lock_
  base::Guarded<std::int64_t> armed_ns_ = timer::kNever;
};

}  // namespace magpie::io
