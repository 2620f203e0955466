// waiter.h: one waiting goroutine or plain thread. Lives on the waiter's stack.
#pragma once

#include <cstdint>

#include "sched/core/g.h"
#include "sched/core/m.h"
#include "sched/rest/thread_sleep.h"
#include "timer/timer.h"

namespace magpie::sched {

using timer::kNever;

class Waiter {
 public:
  // The calling goroutine, or the calling thread.
  Waiter();
  // The goroutine that runs on m.
  explicit Waiter(M* m) : g_(m->current) {}

  // Blocks. `commit` runs once the waiter can be woken: it tells others of this record, unlocks what guards it, and
  // returns false if there is nothing to wait for any more. `look_again` is called on a plain thread that is told of the
  // end of a run() (run_end.h); the thread then waits on.
  void wait(WaitReason reason, bool (*commit)(Waiter& self, void* argument), void* argument,
            void (*look_again)(void* argument) = nullptr);

  // The same, but no longer than until `deadline_ns` (base::now_ns; kNever: without end). True: woken; false: time was
  // up. `commit` must not return false here. `withdraw` runs when time is up, on another stack or thread and perhaps
  // before commit has ended: it takes the record back from whoever was told, and may take locks that commit releases.
  // It returns true if nobody has woken, or will wake, the waiter: then wait_until returns false.
  [[nodiscard]] bool wait_until(std::int64_t deadline_ns, WaitReason reason,
                                bool (*commit)(Waiter& self, void* argument),
                                bool (*withdraw)(Waiter& self, void* argument), void* argument,
                                void (*look_again)(void* argument) = nullptr);

  // By whoever was told, once: the waiter goes on. The record may be gone when it returns.
  void wake();

  // The same for the scheduler, which puts the goroutine where it belongs itself. Null: a plain thread, which goes on.
  G* wake_thread_or_take_goroutine() {
    G* g = g_;
    if (g == nullptr) sleep_.wake();  // the record may be gone now
    return g;
  }

  // For a plain thread that has told others itself: blocks.
  void block_thread() {
    while (sleep_.sleep(kNever) != ThreadSleep::End::woken) {
    }
  }
  // By run_end.h.
  void tell_thread() { sleep_.tell(); }
  bool is_thread() const { return g_ == nullptr; }

  Waiter* next = nullptr;  // for lists of whoever was told

 private:
  struct Timed;

  ThreadSleep::End sleep_until(std::int64_t deadline_ns, void (*look_again)(void* argument),
                               void* argument);

  G* g_ = nullptr;     // null: a plain thread
  ThreadSleep sleep_;  // for a plain thread
};

}  // namespace magpie::sched
