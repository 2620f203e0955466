// preempt.h: stops a thread that uses the CPU although its P was taken.
//
// The signal's handler runs on the M's signal stack and puts the whole thread to sleep there, until
// another M passes it a P (bound.h). Registers, thread_locals, a half-done malloc, an exception in
// flight: all stay on their thread. So any code may be stopped anywhere, except inside the runtime.
// There the handler returns at once, because the goroutine is about to find out by itself. A thread
// that needs a lock which a stopped thread holds sleeps in the kernel and loses its P. So the
// stopped thread has its turn.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cstdint>

#include "sched/core/m.h"

namespace magpie::sched {

struct Runtime;

class Preemption {
 public:
  // False: it is no signal, the system or the C library does not let it be caught, or the runtime
  // uses it for something else. 0 is allowed.
  static bool can_use(int signal);

  // install() installs the handler; remove() puts back what was there. Without Stops::yes the
  // signal only asks for stacks (dump/sample.h).
  enum class Stops { no, yes };
  void install(int signal, Stops stops);
  void remove();

  // A thread that becomes an M calls unblock(). Then it can be stopped even if it was born with the
  // signal blocked, as in programs that leave signals to one thread. A thread that ceases to be an
  // M calls block_again(): the signal is blocked again if it was.
  void unblock(M* m) const;
  void block_again(M* m) const;

  // The calling thread was sent the signal, lost its P, and comes into the runtime by itself: the
  // goroutine, or one before it on this thread, may have blocked the signal.
  void let_in() const;

  bool works() const { return signal_ != 0 && stops_; }
  // False: in the child of a fork(), before its handler has run.
  bool is_of_this_process() const { return process_ == getpid(); }

  static constexpr std::int64_t kStopsWithinNs = 200'000;  // a signal takes microseconds to arrive
  // Sysmon calls this: the M has no P and uses the CPU.
  void stop(M* m);

  // A dump calls this: the M is asked for its stack.
  bool send(M* m) const;

 private:
  int signal_ = 0;
  bool stops_ = false;
  pid_t process_ = 0;
};

}  // namespace magpie::sched
