// without_p.h: Ms that run a goroutine without a P: sysmon took it, or the M gave it away for a
// blocking call.
//
// Such a goroutine runs on until it enters the runtime. Most are about to, or sleep. If a goroutine
// computes for long without a sleep (stretch.h), sysmon stops it by a signal (preempt.h), and it
// waits for its turn like all others. While the valve is open, sysmon stops no thread.
#pragma once

#include <cstdint>

#include "sched/core/m.h"
#include "sched/taking/announcements.h"
#include "sched/taking/stretch.h"

namespace magpie::sched {

class WithoutP {
 public:
  // m's thread calls this, inside. It has given its P away for a blocking call, and sysmon is to
  // note it.
  void announce(M* m) { announced_.announce(m); }  // [announce]

  // Goroutines that run without a P, or are about to queue for one: one more, one less, and how
  // many. seq_cst, for the detection of deadlocks.
  void add() { count_.fetch_add(1, base::seq_cst); }
  void remove() { count_.fetch_sub(1, base::seq_cst); }
  int count() const { return count_.load(base::seq_cst); }

  // ---- sysmon only

  // Sysmon took m's P, because m computes or for another reason. `stretch` is what is known of how
  // it computes.
  enum class Computes { no, yes };
  void note(M* m, std::int64_t now_ns, Computes computes, Stretch stretch = {});
  bool any() const { return first_ != nullptr; }
  // The Ms that compute, as far as is known, and have not been stopped yet.
  int computing() const { return computing_; }
  // One of those whose P sysmon took slept at this futex then.
  bool somebody_waits_for(std::uintptr_t lock) const;
  // Looks at each M, and forgets the Ms that came back. Returns when to look again.
  std::int64_t look(std::int64_t now_ns);

 private:
  void note_announced(std::int64_t now_ns);
  void look_at(M* m, std::int64_t now_ns);

  void set_computes(M* m, bool computes);

  M* first_ = nullptr;  // sysmon only
  int computing_ = 0;   // sysmon only
  Announcements<M> announced_;
  base::Atomic<int> count_{0};  // atomic, unproven: see add()
};

}  // namespace magpie::sched
