#include "io/deadline.h"

#include <mutex>

#include "base/clock.h"
#include "base/cpu.h"
#include "sched/entry.h"
#include "sched/timers.h"

namespace magpie::io {

using timer::kNever;
using timer::TimerSet;

Deadline::~Deadline() { sched::disarm_and_settle(*this); }

bool Deadline::has_passed() const {
  std::int64_t when = when_ns_.load(base::relaxed);
  return when != kNever && when <= base::now_ns();
}

void Deadline::set(std::int64_t deadline_ns) {
  sched::Entry entry;  // whoever fires it must not wait for a lock of one that lost its P
  std::lock_guard hold(lock_);
  when_ns_.store(deadline_ns, base::relaxed);
  if (deadline_ns < armed_ns_ && deadline_ns > base::now_ns()) arm_locked(deadline_ns);
}

void Deadline::arm_if_set() {
  std::int64_t when = when_ns_.load(base::relaxed);
  if (when != kNever) set(when);
}

void Deadline::arm_locked(std::int64_t at_ns) {
  if (armed_ns_ != kNever && sched::disarm(*this) == TimerSet::Removal::firing) return;  // it looks
  while (word.view().firing) base::cpu_relax();  // it has looked: some instructions are left
  // Without a runtime nobody waits.
  if (sched::arm(*this, at_ns)) armed_ns_ = at_ns;
}

void* Deadline::on_time(Timer& timer) {
  auto& self = static_cast<Deadline&>(timer);
  self.lock_.lock();
  std::int64_t when = self.when_ns_.load(base::relaxed);
  bool passed = when <= base::now_ns();
  void* ready = passed ? self.passed_(self.argument_) : nullptr;
  if (passed || when == kNever) {
    self.armed_ns_ = kNever;
    self.lock_.unlock();
    timer.finished();
  } else {
    self.armed_ns_ = when;
    (void)sched::arm(timer, when);  // under the lock: whoever moves the deadline must find it
    self.lock_.unlock();
  }
  return ready;
}

void Deadline::on_end(Timer& timer) {
  auto& self = static_cast<Deadline&>(timer);
  self.armed_ns_ = kNever;
  timer.finished();
}

}  // namespace magpie::io
