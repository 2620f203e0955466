#include "time/timer_state.h"

#include <sched.h>

#include <new>
#include <optional>
#include <stdexcept>

#include <magpie/go.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/guard.h"
#include "sched/entry.h"
#include "sched/timers.h"

namespace magpie::detail {
namespace {

using timer::TimerSet;

constexpr std::int64_t kRetryNs = 1'000'000;  // when there was no memory for a goroutine

TimePoint as_time_point(std::int64_t ns) { return TimePoint(std::chrono::nanoseconds(ns)); }

// The next tick in the future. Missed ticks are left out.
std::int64_t next_tick(std::int64_t when_ns, std::int64_t period_ns, std::int64_t now_ns) {
  std::int64_t missed = now_ns > when_ns ? (now_ns - when_ns) / period_ns : 0;
  std::int64_t on_schedule = when_ns + missed * period_ns;
  return sum_of_ns(on_schedule, period_ns);
}

}  // namespace

void* TimerState::fire_state(timer::Timer& timer) {
  auto& self = static_cast<TimerState&>(timer);
  self.lock.lock();
  self.fire_and_unlock();
  return nullptr;
}

// Gives the record back: to a set, to its owners, or to the heap.
void TimerState::fire_and_unlock() {
  std::int64_t now = base::now_ns();
  std::int64_t again = kNoDeadline;
  if (std::optional<std::int64_t> instead = firing.take_word()) {
    again = *instead;
  } else if (!deliver_locked(now)) {
    again = now + kRetryNs;
  } else if (ticks) {
    again = next_tick(when_ns, period_ns, now);
  }
  if (again == kNoDeadline) {
    if (finish_and_unlock(firing.decide())) free_outside();
    return;
  }
  // Under the lock although it may wake a thread: it never comes back here, and a stop() must find
  // the timer in its set.
  firing.rearm();
  (void)sched::arm(*this, again);  // true: a runtime runs, or nobody would fire
  lock.unlock();
}

// `dies`: nobody else knows it, the caller frees it.
bool TimerState::finish_and_unlock(bool dies) {
  lock.unlock();
  if (!dies) finished();
  return dies;
}

void TimerState::free_outside() {
  sched::abandon(*this);
  try {
    magpie::go(sched::drop_abandoned);
  } catch (const std::bad_alloc&) {  // the next one's, or the end of the runtime, sees to it
  }
}

// The runtime ends, or it was abandoned.
void TimerState::drop_state(timer::Timer& timer) {
  auto& self = static_cast<TimerState&>(timer);
  if (self.firing.is_left_to_free()) {
    delete &self;
    return;
  }
  self.lock.lock();
  if (self.finish_and_unlock(self.firing.drop())) sched::abandon(self);
}

// False: no memory now.
bool TimerState::deliver_locked(std::int64_t now_ns) {
  if (!calls()) {
    if (values == Chan<TimePoint>::nil()) {
      unseen_ns = now_ns;
    } else {
      // Under the lock although it may wake a receiver: a stop() that comes now must find the
      // value, to take it back. It never blocks, and takes no lock but the channel's. Full: the
      // tick before was not received. Closed, by a user: nobody wants it, and no caller is here
      // whom an exception could tell.
      TimePoint now = as_time_point(now_ns);
      Outgoing<TimePoint> value(now);
      (void)try_send(ChanAccess::core(values), value.address());
    }
    return true;
  }
  try {
    magpie::go([its = call] { its.call(its.object.get()); });
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// True: nobody had received the value.
bool TimerState::take_back_locked() {
  if (calls()) return false;
  if (values == Chan<TimePoint>::nil()) return std::exchange(unseen_ns, 0) != 0;
  return values.try_recv().has_value();
}

bool TimerState::stop() {
  // A value that a ticker has sent before may still be there.
  if (!ticks && sched::disarm(*this) == TimerSet::Removal::removed) [[likely]]
    return true;
  return stop_late();
}

// It ticks, or fires, or is over.
bool TimerState::stop_late() {
  sched::Entry entry;  // the firer must not wait for a holder that lost its P
  base::Guard hold(lock);
  TimerSet::Removal where = sched::disarm(*this);
  bool was_active = std::exchange(is_for_ever, false) || where == TimerSet::Removal::removed;
  if (where == TimerSet::Removal::firing && firing.may_leave_word())
    was_active |= firing.leave_word(kNoDeadline);
  bool unreceived = take_back_locked();
  return was_active || unreceived;
}

void TimerState::wait_until_idle() const {
  for (int spin = 1; word.view().firing; ++spin) {
    base::cpu_relax();
    if (spin % 100 == 0) sched_yield();
  }
}

bool TimerState::reset(DeadlineNs first, std::int64_t period) {
  sched::Entry entry;
  base::Guard hold(lock);
  TimerSet::Removal where = sched::disarm(*this);
  bool was_active = std::exchange(is_for_ever, false) || where == TimerSet::Removal::removed;
  bool unreceived = take_back_locked();
  period_ns = period;
  if (where == TimerSet::Removal::firing && firing.may_leave_word()) {
    was_active |= firing.leave_word(first);
  } else {
    if (where == TimerSet::Removal::firing) wait_until_idle();  // some instructions
    firing.begin();
    if (first != kNoDeadline && !sched::arm(*this, first))
      throw std::logic_error("magpie: reset() of a timer: no runtime runs");
  }
  is_for_ever = first == kNoDeadline;
  return was_active || unreceived;
}

Chan<TimePoint> TimerState::channel() {
  if (calls()) return Chan<TimePoint>::nil();
  {
    sched::Entry entry;
    base::Guard hold(lock);
    if (values != Chan<TimePoint>::nil()) return values;
  }
  Chan<TimePoint> fresh(1);
  sched::Entry entry;
  base::Guard hold(lock);
  if (values == Chan<TimePoint>::nil()) {
    if (unseen_ns != 0) (void)fresh.try_send(as_time_point(unseen_ns));  // nobody waits for it yet
    unseen_ns = 0;
    values = fresh;
  }
  return values;
}

void TimerState::last_handle_gone() {
  // [timer] idle: no firer has the record any more, and without handles nobody can arm it again.
  // Only a tick that nobody has received is still to be taken back, and a firer may still hold the
  // lock.
  bool kept_a_tick = ticks && values != Chan<TimePoint>::nil();
  if (word.is_idle() && !kept_a_tick && !firing.was_rearmed()) {
    delete this;
    return;
  }
  bool wanted = calls() || (values != Chan<TimePoint>::nil() && !ticks);
  if (!wanted) stop();
  {
    sched::Entry entry;
    base::Guard hold(lock);
    timer::TimerWord::View where = word.view();
    if (firing.leave_to_firing(where)) return;  // once the lock is free it may be gone
  }
  wait_until_idle();
  delete this;
}

TimerHandle::TimerHandle(DeadlineNs first, std::int64_t period_ns, TimerCall call)
    : state_(new TimerState(period_ns, std::move(call))) {
  state_->is_for_ever = first == kNoDeadline;
  if (state_->is_for_ever || sched::arm(*state_, first)) return;
  delete state_;
  throw std::logic_error("magpie: no runtime runs; use timers inside magpie::run()");
}

TimerHandle::TimerHandle(const TimerHandle& other) noexcept : state_(other.state_) {
  if (state_ != nullptr) state_->handles.fetch_add(1, base::relaxed);  // relaxed: one is held
}

TimerHandle::~TimerHandle() {
  if (state_ == nullptr) return;
  // acquire: with the others' release; the last one sees what they did
  if (state_->handles.load(base::acquire) == 1 ||
      state_->handles.fetch_sub(1, base::acq_rel) == 1) {
    state_->last_handle_gone();
  }
}

// Null: the handle was moved from.
Chan<TimePoint> TimerHandle::channel() const {
  return state_ == nullptr ? Chan<TimePoint>::nil() : state_->channel();
}
bool TimerHandle::stop() const { return state_ != nullptr && state_->stop(); }
bool TimerHandle::reset(DeadlineNs first, std::int64_t period_ns) const {
  if (state_ == nullptr)
    throw std::logic_error("magpie: reset() of a timer: its handle was moved from");
  return state_->reset(first, period_ns);
}

}  // namespace magpie::detail
