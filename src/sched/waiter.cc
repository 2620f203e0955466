#include "sched/waiter.h"

#include "sched/core/m.h"
#include "sched/current.h"
#include "sched/entry.h"
#include "sched/park.h"
#include "sched/timers.h"

namespace magpie::sched {

Waiter::Waiter(const void* object) : object_(object) {
  static_assert(offsetof(Waiter, object_) == kObjectOffset);
  M* m = current_m();
  if (m != nullptr) g_ = m->current;
}

// For a plain thread. Never returns `told`: it handles that itself.
ThreadSleep::End Waiter::sleep_until(std::int64_t deadline_ns, void (*look_again)(void*),
                                     void* argument) {
  for (;;) {
    ThreadSleep::End end = sleep_.sleep(deadline_ns);
    if (end != ThreadSleep::End::told) return end;
    look_again(argument);
  }
}

void Waiter::wait(WaitReason reason, bool (*commit)(Waiter&, void*), void* argument,
                  void (*look_again)(void*)) {
  struct Step {
    Waiter* self;  // first: see park()
    bool (*commit)(Waiter&, void*);
    void* argument;
  } step{this, commit, argument};
  if (g_ == nullptr) {
    if (commit(*this, argument)) (void)sleep_until(kNever, look_again, argument);
    return;
  }
  Entry entry;
  park(
      reason,
      [](M*, G*, void* mine) {
        // A copy: after its commit the waiter, and its stack, may be gone.
        Step now = *static_cast<Step*>(mine);
        return now.commit(*now.self, now.argument);
      },
      &step);
}

// What park() is given begins with the waiter.
struct BeginsWithWaiter {
  Waiter* self;
};

// A goroutine that waits with a deadline. On its stack.
struct Waiter::Timed : BeginsWithWaiter, timer::Timer {
  Timed(Waiter& its, bool (*tell)(Waiter&, void*), bool (*take_back)(Waiter&, void*),
        void* its_argument)
      : BeginsWithWaiter{&its},
        Timer(go_on),
        commit(tell),
        withdraw(take_back),
        argument(its_argument) {}

  // [timer] fire: the waiter continues if nobody else has woken it, or will.
  static void* go_on(timer::Timer& timer) {
    Timed& self = static_cast<Timed&>(timer);
    bool withdrawn = self.withdraw(*self.self, self.argument);
    G* g = self.self->g_;
    if (withdrawn) self.time_was_up = true;
    timer.finished();
    return withdrawn ? g : nullptr;
  }

  static bool commit_step(M* m, G*, void* mine) {
    Timed& self = *static_cast<Timed*>(mine);
    // Once the timers are released this one may fire, and withdraw what is being told here:
    // commit's locks order the two. After commit the waiter, and its stack, may be gone.
    release_held_timers(m);
    return self.commit(*self.self, self.argument);
  }

  bool (*commit)(Waiter&, void*);
  bool (*withdraw)(Waiter&, void*);
  void* argument;
  bool time_was_up = false;  // go_on writes it before it readies the waiter
};

bool Waiter::wait_until(std::int64_t deadline_ns, WaitReason reason, bool (*commit)(Waiter&, void*),
                        bool (*withdraw)(Waiter&, void*), void* argument,
                        void (*look_again)(void*)) {
  if (deadline_ns == kNever) {
    wait(reason, commit, argument, look_again);
    return true;
  }
  if (g_ == nullptr) {
    commit(*this, argument);
    if (sleep_until(deadline_ns, look_again, argument) == ThreadSleep::End::woken) return true;
    if (withdraw(*this, argument)) return false;
    block_thread();  // it is about to be woken
    return true;
  }
  Entry entry;
  Timed timed(*this, commit, withdraw, argument);
  arm_and_hold(entry.m(), timed, deadline_ns);
  park(reason, Timed::commit_step, &timed);
  if (timed.time_was_up) return false;
  disarm_and_wait(timed);
  return true;
}

void Waiter::wake() {
  if (g_ != nullptr) {
    ready(g_);
  } else {
    sleep_.wake();
  }
}

}  // namespace magpie::sched
