#include "io/deadline.h"

#include "base/clock.h"
#include "sched/entry.h"
#include "sched/timers.h"

namespace magpie::io {

using timer::kNever;
using timer::TimerSet;

Deadline::~Deadline() {
  sched::disarm_and_wait(*this);
  sched::Entry entry;  // as in set()
  core_.wait_for_lock_holder();
}

bool Deadline::has_passed() const {
  std::int64_t when = core_.when_ns();
  return when != kNever && when <= base::now_ns();
}

void Deadline::set(std::int64_t deadline_ns) {
  sched::Entry entry;  // the firer must not wait for a holder that lost its P
  core_.set(*this, deadline_ns);
}

void Deadline::arm_if_set() {
  std::int64_t when = core_.when_ns();
  if (when != kNever) set(when);
}

std::int64_t Deadline::now_ns() const { return base::now_ns(); }
bool Deadline::arm(std::int64_t at_ns) { return sched::arm(*this, at_ns); }
bool Deadline::disarm() { return sched::disarm(*this) == TimerSet::Removal::firing; }

void* Deadline::on_time(Timer& timer) {
  auto& self = static_cast<Deadline&>(timer);
  return self.core_.look(self);
}

void Deadline::on_end(Timer& timer) {
  auto& self = static_cast<Deadline&>(timer);
  self.core_.end(self);
}

}  // namespace magpie::io
