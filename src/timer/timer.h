// timer.h: something that happens at a given time, once. A record in its owner's memory, often on a stack.
//
// Protocol  [timer]
//
//            insert                    take_due                fire
//     IDLE ----------> IN SET ------------------> FIRING ---------------> IDLE      by finished()
//       ^                |  remove: it will not fire  \_______ insert ___> IN SET   fires again later
//       +----------------+
//
// Sides     insert: the owner, or the one that fires it, while it fires.  remove: the owner.  take_due, fire: any
//           thread of the scheduler; fire ends with finished() or with another insert, and does not touch the
//           record after that.
// Once      Into and out of a set under the set's lock. So either remove finds it in the set, and it never fires, or
//           it was taken and fires exactly once.
// Lifetime  After remove said `removed` or `idle`, or is_idle() yes, the owner may reuse or destroy the record. After
//           `firing` it may not yet: somebody is in fire(). Owners whose memory goes wait for it
//           and remove it again, as fire may have put it into a set (settle); others let fire find
//           out.
// Orders    [timer] whoever makes it idle releases what was done, the owner's look acquires it. A set is read without
//           its lock only as a hint where to lock; under the lock it is looked at again.
// Proof     tests/model/timer_model.cc
#pragma once

#include <cstdint>
#include <limits>

#include "base/atomic.h"

namespace magpie::timer {

class TimerSet;

// A time that never comes.
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Where a timer is.
class TimerWord {
 public:
  struct View {
    TimerSet* set;  // null: in none
    bool firing;
  };
  View view() const {
    std::uintptr_t now = word_.load(base::acquire);  // [timer] with finish()
    if (now == kFiring) return {nullptr, true};
    return {reinterpret_cast<TimerSet*>(now), false};
  }
  bool is_idle() const { return word_.load(base::acquire) == kIdle; }  // [timer] with finish()

  // Under the set's lock. Relaxed: the lock orders them, and whoever reads without it looks again.
  void enter(TimerSet* set) { word_.store(reinterpret_cast<std::uintptr_t>(set), base::relaxed); }
  void take() { word_.store(kFiring, base::relaxed); }

  // The last touch of whoever took it out: the owner may put it into another set, under another lock.
  void leave() { word_.store(kIdle, base::release); }   // [timer] with view()
  void finish() { word_.store(kIdle, base::release); }  // [timer] with view()

 private:
  static constexpr std::uintptr_t kIdle = 0, kFiring = 1;

  base::Atomic<std::uintptr_t> word_{kIdle};  // atomic [timer]
};

struct Timer {
  // Called when the time has come, on a thread of the scheduler, with no lock held; must not block. Ends with
  // finished(), or with another insert. Returns what became ready, in the scheduler's terms, or null.
  using Fire = void* (*)(Timer& self);
  // Called instead of fire, if there is one, when the timer's scheduler ends while it is in a set. Runs no code of users: others
  // of the same scheduler are still in their sets. Ends with finished(), or abandons the timer (sched/timers.h).
  using Drop = void (*)(Timer& self);
  // Called for a timer that was abandoned: it has no owner, and goes. May run code of users.
  using Free = void (*)(Timer& self);

  explicit Timer(Fire on_time, Drop on_end = nullptr, Free abandoned = nullptr)
      : fire(on_time), drop(on_end), free(abandoned) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // By fire, when it does not touch the record any more.
  void finished() { word.finish(); }

  // fixed after construction
  const Fire fire;
  const Drop drop;
  const Free free;

  TimerWord word;  // [timer]

  // guarded by the set's lock
  std::int64_t when_ns = 0;
  std::uint64_t place = 0;  // see TimerSet
  Timer* next = nullptr;
  Timer* previous = nullptr;
};

}  // namespace magpie::timer
