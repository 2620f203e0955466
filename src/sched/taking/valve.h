// valve.h: a way out of knots that nobody foresaw.
//
// A stopped thread may hold any lock of user code. A thread that waits for such a lock outside the
// runtime loses its P, so the stopped thread has its turn. Inside the runtime no thread should wait
// for such a lock. If a thread does so all the same, it keeps its P. Once all Ps are kept that way,
// nothing would ever run again. So sysmon looks for threads that are inside, hold a P, and sleep in
// the kernel. The wait must be neither the runtime's own nor the kernel's, such as a wait for the
// lock of the address space. While there is such a thread, sysmon lets stopped threads run on
// without a P, the oldest first, one at each look, and stops no thread. The kernel shares the CPUs
// among them meanwhile.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/atomic.h"
#include "sched/core/m.h"

namespace magpie::sched {

// The M is inside the runtime, and its thread sleeps in the kernel (is_asleep(thread) tells), in a
// wait that is not the runtime's own.
[[nodiscard]] bool sleeps_for_others(const M& m, bool (*is_asleep)(pid_t thread));

// Sysmon only, except openings().
class Valve {
 public:
  // No M stands still inside the runtime for this long unless it waits.
  static constexpr std::int64_t kKnotNs = 5'000'000;
  // The same if the kernel does not tell whether it waits: it may want a CPU.
  static constexpr std::int64_t kUnseenKnotNs = 2'000'000'000;

  // m holds a P and has not moved for `still_ns`. It may be part of a knot.
  void look_at(M* m, std::int64_t still_ns);
  // Call this after look_at() of all holders. True: the valve is open, call again soon.
  bool act();

  bool is_open() const { return open_; }
  std::uint64_t openings() const { return openings_.read(); }

 private:
  bool knot_seen_ = false;
  bool open_ = false;
  base::Counter openings_;
};

}  // namespace magpie::sched
