#include "sched/timers.h"

#include <sched.h>

#include <new>

#include "base/cpu.h"
#include "sched/entry.h"
#include "sched/rest/fire.h"
#include "sched/run/outsider_gate.h"
#include "sched/run/runtime.h"

namespace magpie::sched {
using timer::TimerSet;

namespace {

[[gnu::noinline]] bool arm_from_outside(Timer& timer, std::int64_t when_ns) {
  Visit visit;
  if (!visit) return false;
  if (runtime->ps.in_use()[0]->timers.insert(timer, when_ns)) see_to_timer(nullptr, when_ns);
  return true;
}

// [outsider] Plain threads take timers out of sets until drop_timers() does. This needs a gate of
// its own. The runtime's gate closes as soon as main has returned. Then run() waits for threads,
// and these may wait for a plain thread that stops a timer.
OutsiderGate sets_gate;

bool has_forgotten_sets = false;  // written in the child of a fork(), by its only thread

[[gnu::noinline]] TimerSet::Removal disarm_from_outside(Timer& timer) {
  if (sets_gate.enter_unnoted()) {
    TimerSet::Removal where = TimerSet::remove(timer);
    sets_gate.exit();
    return where;
  }
  // drop_timers() takes out what is left, or has done so, and calls no user code meanwhile. But if
  // this was the runtime of the parent of a fork(), its sets stay in the child.
  while (TimerSet* set = timer.word.view().set) {
    if (has_forgotten_sets && set->is_forgotten()) return TimerSet::remove(timer);
    sched_yield();
  }
  return timer.word.view().firing ? TimerSet::Removal::firing : TimerSet::Removal::idle;
}

}  // namespace

void open_timers() { sets_gate.open(); }

void forget_timers() {
  new (&sets_gate) OutsiderGate;
  if (runtime == nullptr) return;
  has_forgotten_sets = true;
  for (P* p : runtime->ps.all()) p->timers.forget();
}

bool arm(Timer& timer, std::int64_t when_ns) {
  Entry entry;
  M* m = entry.m();
  if (m == nullptr) [[unlikely]]
    return arm_from_outside(timer, when_ns);
  if (m->p->timers.insert(timer, when_ns)) see_to_timer(m, when_ns);
  return true;
}

TimerSet::Removal disarm(Timer& timer) {
  Entry entry;
  if (entry.m() == nullptr) [[unlikely]]
    return disarm_from_outside(timer);
  return TimerSet::remove(timer);
}

void disarm_and_wait(Timer& timer) {
  // Again after a fire that ended: it may have put the timer into a set again.
  for (int spin = 1; disarm(timer) == TimerSet::Removal::firing; ++spin) {
    base::cpu_relax();
    if (spin % 100 == 0) sched_yield();  // the thread that fires it may have lost its CPU
  }
}

void abandon(Timer& timer) { runtime->abandoned_timers.put(timer); }

// One timer at a time: run() may end while this goroutine waits for the allocator.
void drop_abandoned() {
  for (;;) {
    Timer* timer = [] {
      Entry entry;
      return runtime->abandoned_timers.take();
    }();
    if (timer == nullptr) return;
    timer->drop(*timer);
  }
}

// Unchecked, both: the lock is held while the goroutine parks.
MAGPIE_UNCHECKED void arm_and_hold(M* m, Timer& timer, std::int64_t when_ns) {
  TimerSet& timers = m->p->timers;
  timers.lock().lock();
  if (timers.insert_locked(timer, when_ns)) m->timer_owed_ns = when_ns;
}

MAGPIE_UNCHECKED void release_held_timers(M* m) { m->p->timers.lock().unlock(); }

void drop_timers() {
  sets_gate.close();
  while (!sets_gate.is_empty()) sched_yield();  // visits last microseconds
  for (P* p : runtime->ps.all()) {
    while (Timer* timer = p->timers.take_any()) {
      if (timer->drop != nullptr) {
        timer->drop(*timer);
      } else {
        timer->finished();
      }
    }
  }
  // This destroys objects of users, which may stop their timers: no timer is in a set any more.
  while (Timer* timer = runtime->abandoned_timers.take()) timer->drop(*timer);
}

}  // namespace magpie::sched
