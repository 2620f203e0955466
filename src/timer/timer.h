// timer.h: something that happens at a given time, once. A record in its owner's memory, often on a
// stack.
//
// Protocol  [timer]
//
//            insert                   take_due               fire
//     IDLE ----------> IN SET -----------------> FIRING --------------> IDLE     by finished()
//       ^                |  remove: it will not fire  \______ insert __> IN SET  fires again later
//       +----------------+
//
// Sides     insert: the owner, or the thread that fires it, while it fires.  remove: the owner.
//           take_due, fire: any thread of the scheduler. fire ends with finished() or with another
//           insert, and does not touch the record after that.
// Once      A timer goes into and out of a set under the set's lock. So either remove finds it in
//           the set, and it never fires, or it was taken and fires exactly once.
// Lifetime  After remove said `removed` or `idle`, or is_idle() said yes, the owner may reuse or
//           destroy the record. After `firing` it may not yet: a thread is in fire(). An owner
//           whose memory goes away waits for that thread, and then removes the timer again, as fire
//           may have put it into a set. Other owners let fire find out.
// Orders    [timer] the thread that makes it idle releases what was done, the owner's look acquires
//           it. Without the lock, the set in the word is only a hint where to lock. Under the lock
//           it is read again.
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

  // Under the set's lock. Relaxed: the lock orders them, and a thread that reads without it reads
  // again.
  void enter(TimerSet* set) { word_.store(reinterpret_cast<std::uintptr_t>(set), base::relaxed); }
  void take() { word_.store(kFiring, base::relaxed); }

  // The last touch of the thread that took it out: the owner may put it into another set, under
  // another lock.
  void make_idle() { word_.store(kIdle, base::release); }  // [timer] with view()
  void finish() { word_.store(kIdle, base::release); }     // [timer] with view()

 private:
  static constexpr std::uintptr_t kIdle = 0, kFiring = 1;

  base::Atomic<std::uintptr_t> word_{kIdle};  // atomic [timer]
};

struct Timer {
  // Called when the time has come, on a thread of the scheduler, with no lock held; must not block.
  // Ends with finished(), or with another insert. Returns what became ready, in the scheduler's
  // terms, or null.
  using Fire = void* (*)(Timer& self);
  // Called instead of fire, if there is one, when the timer's scheduler ends while the timer is in
  // a set. Ends with finished(), or gives a timer without owner to the scheduler, which calls it
  // again. Until that second call it must not call user code.
  using Drop = void (*)(Timer& self);

  explicit Timer(Fire on_time, Drop on_end = nullptr) : fire(on_time), drop(on_end) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // fire calls this when it does not touch the record any more.
  void finished() { word.finish(); }

  // fixed after construction
  const Fire fire;
  const Drop drop;

  TimerWord word;  // [timer]

  // guarded by the set's lock
  std::int64_t when_ns = 0;
  std::uint64_t place = 0;  // see TimerSet
  Timer* next = nullptr;
  Timer* previous = nullptr;
};

}  // namespace magpie::timer
