#include "sched/waiter.h"

#include "sched/current.h"
#include "sched/m.h"
#include "sched/park.h"

namespace magpie::sched {

Waiter::Waiter() {
  M* m = current_m();
  g_ = m != nullptr ? m->current : nullptr;
}

void Waiter::wait(WaitReason reason, bool (*commit)(Waiter&, void*), void* argument) {
  struct Step {
    Waiter* self;
    bool (*commit)(Waiter&, void*);
    void* argument;
  } step{this, commit, argument};
  if (g_ == nullptr) {
    if (commit(*this, argument)) event_.wait();
    return;
  }
  park(
      reason,
      [](M*, G*, void* mine) {
        Step now =
            *static_cast<Step*>(mine);  // after its commit the waiter, and its stack, may be gone
        return now.commit(*now.self, now.argument);
      },
      &step);
}

void Waiter::wake() {
  if (g_ != nullptr) {
    ready(g_);
  } else {
    event_.set();
  }
}

}  // namespace magpie::sched
