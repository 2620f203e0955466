// preempt.h: stops a thread that uses the CPU although its P was taken.
//
// The signal's handler runs on the M's signal stack and puts the whole thread to sleep there until somebody passes it a
// P (bound.h). Registers, thread_locals, a half-done malloc, an exception in flight: all stay on their thread,
// so any code may be stopped anywhere. Only inside the runtime it is not: there the handler returns at
// once, for the goroutine is about to find out by itself.
// Whoever needs a lock that a stopped thread holds sleeps in the kernel, loses its P, and so the stopped one's turn comes.
#pragma once

#include <signal.h>

#include <cstdint>

#include "sched/core/m.h"

namespace magpie::sched {

struct Runtime;

class Preemption {
 public:
  // False: it is no signal, the system or its library does not let it be caught, or the runtime needs it otherwise. 0 will do.
  static bool can_use(int signal);

  // Installs the handler; at the end puts back what was there. signal 0: never preempt.
  void install(int signal);
  void remove();

  // By a thread that becomes an M: it can be stopped even if it was born with the signal blocked, as in programs that
  // leave signals to one thread. And by one that ceases to be an M: the signal is blocked again if it was.
  void unblock(M* m) const;
  void block_again(M* m) const;

  bool works() const { return signal_ != 0; }

  static constexpr std::int64_t kStopsWithinNs = 200'000;  // a signal takes microseconds to arrive
  // Sysmon: the M has no P and uses the CPU.
  void stop(M* m);

 private:
  int signal_ = 0;
};

}  // namespace magpie::sched
