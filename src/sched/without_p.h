// without_p.h: Ms that run a goroutine although their P was taken, or given away for a blocking call.
//
// Such a goroutine runs on until it enters the runtime. Most are about to, or sleep. One that uses the CPU instead is stopped
// by a signal (preempt.h) and waits for its turn like everybody.
#pragma once

#include <cstdint>

#include "sched/announcements.h"
#include "sched/m.h"

namespace magpie::sched {

struct Runtime;

class WithoutP {
 public:
  // m's thread, inside: it has given its P away for a blocking call, and sysmon is to note it.
  void announce(M* m) { announced_.announce(m); }  // [announce]

  // ---- sysmon only

  // Its P was taken.
  void note(M* m, std::int64_t now_ns);
  bool any() const { return first_ != nullptr; }
  // Looks at each, and forgets those that came back. Returns when to look again.
  std::int64_t look(Runtime& rt, std::int64_t now_ns);

 private:
  void note_announced(std::int64_t now_ns);
  void look_at(Runtime& rt, M* m, std::int64_t now_ns);

  M* first_ = nullptr;  // sysmon only
  Announcements<M> announced_;
};

}  // namespace magpie::sched
