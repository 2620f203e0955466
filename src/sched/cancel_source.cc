#include "sched/cancel_source.h"

#include <sched.h>

#include <algorithm>

#include "base/clock.h"
#include "base/cpu.h"
#include "sched/entry.h"
#include "sched/presence.h"
#include "sched/run_end.h"

namespace magpie::sched {

// On the waiter's stack.
struct CancelSource::Record : CancelRecord {
  Record(Waiter& its, bool (*take_back)(Waiter&, void*), void* its_argument)
      : waiter(its), withdraw(take_back), argument(its_argument) {}

  void fire() {
    CancelList<>::fire(
        *this, [this] { return withdraw(waiter, argument); }, [this] { waiter.wake(); });
  }

  Waiter& waiter;
  bool (*withdraw)(Waiter&, void*);
  void* argument;
};

std::int64_t CancelSource::deadline_to_watch() const {
  if (deadline_ns_ == kNever) return kNever;
  M* m = current_m();
  bool by_itself = m == nullptr || m->current->bound;
  return by_itself || sched::is_over(timer_run_) ? deadline_ns_ : kNever;
}

bool CancelSource::has_expired_unseen() const {
  std::int64_t deadline_ns = deadline_to_watch();
  return deadline_ns != kNever && base::now_ns() >= deadline_ns;
}

bool CancelSource::is_unwatched() const {
  return deadline_ns_ != kNever && sched::is_over(timer_run_);
}

bool CancelSource::has_expired_unwatched() const {
  return is_unwatched() && base::now_ns() >= deadline_ns_;
}

bool CancelSource::wait(Waiter& waiter, std::int64_t deadline_ns, WaitReason reason,
                        bool (*commit)(Waiter&, void*), bool (*withdraw)(Waiter&, void*),
                        void* argument, void (*look_again)(void*)) {
  // The goroutine is inside from add() to the end of commit. If it were stopped between, the
  // canceller would wait for it in withdraw with the only P.
  Entry entry;
  Record record(waiter, withdraw, argument);
  std::int64_t until_ns = std::min(deadline_ns, deadline_to_watch());
  bool added = waits_.add(record, Presence());
  // Too late for the canceller. Others know of the waiter already and may wake it, so it cannot
  // turn back. But its time is up.
  if (!added) until_ns = base::now_ns();
  bool woken = waiter.wait_until(until_ns, reason, commit, withdraw, argument, look_again);
  if (record.cancelled) return false;
  if (added && !waits_.remove(record, Presence())) {
    for (int spin = 1; record.firing.is_firing(); ++spin) {
      base::cpu_relax();
      if (spin % 100 == 0) sched_yield();  // the canceller may have lost its CPU
    }
  }
  return woken;
}

namespace {

// A waiter that nobody serves. The lock is held from before the canceller knows the waiter until
// the waiter can be woken.
struct LoneSleeper {
  base::UncheckedLock lock;
  bool waits = true;  // guarded by lock
};

bool unlock(Waiter&, void* sleeper) {
  static_cast<LoneSleeper*>(sleeper)->lock.unlock();
  return true;
}

// Time is up, or the source is over: the first of the two wakes the waiter.
bool wake_up(Waiter&, void* sleeper) {
  auto& self = *static_cast<LoneSleeper*>(sleeper);
  self.lock.lock();
  bool first = self.waits;
  self.waits = false;
  self.lock.unlock();
  return first;
}

}  // namespace

bool CancelSource::sleep(std::int64_t deadline_ns, WaitReason reason) {
  Entry entry;
  Waiter waiter(nullptr);
  LoneSleeper self;
  self.lock.lock();
  (void)wait(waiter, deadline_ns, reason, unlock, wake_up, &self);
  return deadline_ns != kNever && base::now_ns() >= deadline_ns;
}

void CancelSource::end() {
  Presence presence;
  over_.store(true, base::release);  // with is_over()
  waits_.end();
  while (CancelRecord* record = waits_.take(presence)) static_cast<Record*>(record)->fire();
}

}  // namespace magpie::sched
