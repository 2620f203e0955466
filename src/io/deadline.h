// deadline.h: until when a goroutine may wait for one direction of a descriptor. It can be moved
// while a goroutine waits.
//
// One timer, armed lazily: it is never later than the deadline, but may be earlier. Most deadlines
// are moved further away (a connection's, with each request) long before they pass. A timer that
// fires too early is armed again. So moving a deadline away costs a store.
#pragma once

#include <cstdint>

#include "base/lock.h"
#include "io/deadline_core.h"
#include "timer/timer.h"

namespace magpie::io {

class Deadline : private timer::Timer {
 public:
  // `passed` is called when the deadline has passed, on a thread of the scheduler, inside the
  // runtime; it returns the goroutine to run, or null.
  using Passed = void* (*)(void* argument);
  Deadline(Passed passed, void* argument)
      : Timer(on_time, on_end), passed_(passed), argument_(argument) {}
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // timer::kNever: none. If it has passed already `passed` is not called: the caller wakes the
  // waiter.
  void set(std::int64_t deadline_ns);
  // Call this after a runtime began: a deadline that was set while none ran has no timer.
  void arm_if_set();
  // Relaxed: [readiness] tells the waiter that it moved.
  bool has_passed() const;

 private:
  friend class DeadlineCore<base::Lock>;

  static void* on_time(Timer& timer);
  static void on_end(Timer& timer);

  // for the core
  std::int64_t now_ns() const;
  bool arm(std::int64_t at_ns);
  bool disarm();
  bool is_firing() const { return word.view().firing; }
  void* call_passed() { return passed_(argument_); }

  // fixed
  const Passed passed_;
  void* const argument_;

  DeadlineCore<base::Lock> core_;  // [deadline]
};

}  // namespace magpie::io
