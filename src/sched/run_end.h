// run_end.h: plain threads that wait are told when a run() has ended.
//
// The end of run() drops goroutines wherever they are. It tells nothing to the locks and channels
// that they waited for, or had been given: these may be gone too. But a plain thread that waits
// behind such a goroutine keeps the lock or channel alive. So the end of run() tells such a thread,
// and the thread looks again itself: at a lock that a dropped goroutine was woken for, or at units
// that were kept for one.
//
// No loss  The thread registers before it looks at what it waits for. The end of run() closes the
//          gate [outsider] before it tells. So a thread that registers too late to be told finds
//          the gate closed when it looks, and knows that the goroutines of that run() are gone.
#pragma once

#include <cstdint>

#include "sched/waiter.h"

namespace magpie::sched {

// Every goroutine of that run() is gone. Acquires what they did.
bool is_over(std::uint64_t generation);

// While this lives the waiter, if it is a plain thread, is told of the end of a run(). Then
// Waiter::wait calls `look_again`.
class ToldOfRunEnd {
 public:
  explicit ToldOfRunEnd(Waiter& waiter) : waiter_(waiter) {
    if (waiter.is_thread()) [[unlikely]]
      enlist();
  }
  ~ToldOfRunEnd() {
    if (waiter_.is_thread()) [[unlikely]]
      delist();
  }
  ToldOfRunEnd(const ToldOfRunEnd&) = delete;
  ToldOfRunEnd& operator=(const ToldOfRunEnd&) = delete;

 private:
  friend void note_run_end(std::uint64_t generation);

  void enlist();
  void delist();

  Waiter& waiter_;
  // guarded by the lock of the list
  ToldOfRunEnd* next_ = nullptr;
  ToldOfRunEnd* previous_ = nullptr;
};

// run() calls this when the gate is closed and no thread runs its goroutines any more.
void note_run_end(std::uint64_t generation);

// Call this in the child of a fork(): its only thread waits for nothing.
void forget_waiting_threads();

// Call this in the child of a fork(): there the run() of the parent is over.
void note_forgotten_run(std::uint64_t generation);

}  // namespace magpie::sched
