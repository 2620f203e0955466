// stretch.h: has a thread computed for a while without sleeping in the kernel?
//
// Sysmon stops only such a thread by a signal. A signal makes calls fail with EINTR in which the
// thread sleeps, or is about to sleep. So a thread that computes for a millisecond and then waits
// in poll() is better left alone, although sysmon takes its P.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/other_thread.h"

namespace magpie::sched {

// A thread that has computed for this long without a sleep most likely still computes.
inline constexpr std::int64_t kLongStretchNs = 1'500'000;

// Sysmon only.
class Stretch {
 public:
  bool has_begun() const { return began_at_ns_ >= 0; }

  // Looks at the thread. Returns the CPU time that it has computed since the first look without a
  // sleep between. `used_ns` is the CPU time that it has used by now. A thread that has not run
  // since the last look has not fallen asleep since either. So threads that sleep for long cost no
  // more than a look at their clock. If the kernel does not tell of sleeps, a thread that has not
  // run since the last look may be asleep: 0. A thread that has run is taken to have computed since
  // the first look: on a busy machine it may have waited for a CPU most of the time.
  std::int64_t measure_ns(pid_t thread, std::int64_t used_ns) {
    if (has_begun() && used_ns == looked_at_ns_)
      return sleeps_ == kNotTold ? 0 : used_ns - began_at_ns_;
    looked_at_ns_ = used_ns;
    std::int64_t sleeps = base::sleeps_of(thread);
    if (!has_begun() || sleeps != sleeps_) {
      began_at_ns_ = used_ns;
      sleeps_ = sleeps;
    }
    return used_ns - began_at_ns_;
  }

 private:
  static constexpr std::int64_t kNotTold = -1;  // as sleeps_of() has it

  // in the thread's CPU time
  std::int64_t began_at_ns_ = -1;  // -1: no look yet
  std::int64_t looked_at_ns_ = 0;  // at the last look
  std::int64_t sleeps_ = 0;
};

// The thread is not asleep, so a signal interrupts no call in which it waits. If the kernel does
// not tell, `stretch_ns` does, its length at this moment: a thread that stood still since the last
// look has none.
inline bool seems_to_compute(pid_t thread, std::int64_t stretch_ns) {
  const base::Doing doing = base::doing_of(thread);
  return doing == base::Doing::not_told ? stretch_ns >= kLongStretchNs : doing == base::Doing::runs;
}

}  // namespace magpie::sched
