// valve.h: a way out for knots that nobody foresaw.
//
// A stopped thread may hold any lock of user code. Whoever waits for it outside the runtime loses its P, so the stopped one's
// turn comes. Inside the runtime nobody should wait for such a lock; but if somebody does, it keeps its P, and once all Ps
// are kept that way nothing would ever run again. So sysmon looks for threads that are inside, hold a P and sleep in the
// kernel in a wait that is neither the runtime's own nor the kernel's, such as for the lock of the
// address space. While there is one, it lets stopped threads run on without a P, the oldest first,
// one at each look, and stops nobody. The kernel shares the CPUs among them meanwhile.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/atomic.h"
#include "sched/core/m.h"

namespace magpie::sched {

// The M is inside the runtime, and its thread sleeps in the kernel, as is_asleep(thread) tells, in a wait that is
// not the runtime's own.
[[nodiscard]] bool sleeps_for_others(const M& m, bool (*is_asleep)(pid_t thread));

// Sysmon only, but for openings().
class Valve {
 public:
  // It has stood still for longer than anything takes inside.
  static constexpr std::int64_t kKnotNs = 5'000'000;

  // m, which holds a P and has not moved for `still_ns`, may be part of a knot.
  void look_at(M* m, std::int64_t still_ns);
  // After all of them. True: it is open, come again soon.
  bool act();

  bool is_open() const { return open_; }
  std::uint64_t openings() const { return openings_.read(); }

 private:
  bool knot_seen_ = false;
  bool open_ = false;
  base::Counter openings_;
};

}  // namespace magpie::sched
