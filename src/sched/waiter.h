// waiter.h: one waiting goroutine or plain thread. The record lives on the waiter's stack.
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
  // For the calling goroutine, or the calling thread. `object` is what it waits for: dumps show it,
  // see wait_object.h.
  explicit Waiter(const void* object = nullptr);
  // For the goroutine that runs on m.
  Waiter(M* m, const void* object) : g_(m->current), object_(object) {}

  // Blocks. `commit` runs once the waiter can be woken. It tells others of this record, unlocks
  // what guards it, and returns false if there is nothing to wait for any more. `look_again` is for
  // a plain thread that is told of the end of a run() (run_end.h): the thread calls it, and then
  // waits again.
  void wait(WaitReason reason, bool (*commit)(Waiter& self, void* argument), void* argument,
            void (*look_again)(void* argument) = nullptr);

  // The same, but no longer than until `deadline_ns` (base::now_ns; kNever: without end). True:
  // woken. False: time was up. `commit` must not return false here. `withdraw` runs when time is
  // up, on another stack or thread and perhaps before commit has ended. It takes the record back
  // from the side that commit told, and may take locks that commit releases. It returns true if
  // nobody has woken, or will wake, the waiter: then wait_until returns false.
  [[nodiscard]] bool wait_until(std::int64_t deadline_ns, WaitReason reason,
                                bool (*commit)(Waiter& self, void* argument),
                                bool (*withdraw)(Waiter& self, void* argument), void* argument,
                                void (*look_again)(void* argument) = nullptr);

  // The waker that was told of the record calls this, once: the waiter continues. The record may be
  // gone when wake() returns.
  void wake();

  // The same for the scheduler, which puts the goroutine in a queue itself. Null: a plain thread,
  // which continues.
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
  // run_end.h calls this.
  void tell_thread() { sleep_.tell(); }
  bool is_thread() const { return g_ == nullptr; }

  // For park(): where the object is written. Dumps find it there.
  const void** object_word() { return &object_; }
  static constexpr std::size_t kObjectOffset = sizeof(G*);

 private:
  struct Timed;

  ThreadSleep::End sleep_until(std::int64_t deadline_ns, void (*look_again)(void* argument),
                               void* argument);

  G* g_ = nullptr;  // null: a plain thread
  const void* object_;
  ThreadSleep sleep_;  // for a plain thread
};

}  // namespace magpie::sched
