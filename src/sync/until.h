// until.h: how long a waiter waits for a lock: until a time, or until a context is over.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "sched/cancel_source.h"
#include "sched/waiter.h"

namespace magpie::sync {

using Commit = bool (*)(sched::Waiter& self, void* argument);
using Withdraw = bool (*)(sched::Waiter& self, void* argument);
using LookAgain = void (*)(void* argument);

// kNever: for ever.
struct UntilTime {
  std::int64_t deadline_ns;

  bool wait(sched::Waiter& waiter, sched::WaitReason reason, Commit commit, Withdraw withdraw,
            void* argument, LookAgain look_again = nullptr) const {
    return waiter.wait_until(deadline_ns, reason, commit, withdraw, argument, look_again);
  }
  bool is_over() const { return deadline_ns != sched::kNever && base::now_ns() >= deadline_ns; }
};

struct UnlessOver {
  sched::CancelSource& source;

  bool wait(sched::Waiter& waiter, sched::WaitReason reason, Commit commit, Withdraw withdraw,
            void* argument, LookAgain look_again = nullptr) const {
    return source.wait(waiter, sched::kNever, reason, commit, withdraw, argument, look_again);
  }
  bool is_over() const { return source.is_over(); }
};

}  // namespace magpie::sync
