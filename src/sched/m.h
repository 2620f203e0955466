// m.h: an M, an OS thread of the runtime.
//
// An M always runs on some stack: a goroutine's, a pooled one on which the loop searches and calls fresh
// goroutines, or, before its first and after its last, the one the thread was born with. While a goroutine runs,
// its M holds a spare stack, so that blocking never has to allocate: the loop goes on on the spare.
#pragma once

#include <pthread.h>

#include "base/event.h"
#include "base/random.h"
#include "base/sanitizer.h"
#include "context/exceptions.h"
#include "sched/g.h"
#include "sched/p.h"
#include "timer/timer.h"

namespace magpie::sched {

struct M;

// A goroutine's step after its registers are saved: tells the world that it waits. Runs on another stack, maybe
// while a waker resumes the goroutine already; m is the M it left. False: it need not wait, it becomes runnable
// at once.
using Commit = bool (*)(M* m, G* g, void* argument);

struct M {
  // thread only
  P* p = nullptr;                      // null: none held
  G* current = nullptr;                // null: the loop runs
  stack::Stack* loop_stack = nullptr;  // the loop's, while it runs
  stack::Stack* spare = nullptr;
  G* start_with = nullptr;        // for the loop on the spare: run this first
  bool searching = false;         // counted in Search
  std::uint32_t spin_budget = 0;  // rounds to search before sleeping; learns
  std::int64_t watch_owed_ns =
      timer::kNever;  // [watch] a timer armed while parking: the armer's part is still to do
  context::ExceptionState* exceptions = nullptr;

  // What the side that comes up after a switch owes to the side that left.
  struct Left {
    G* yielded = nullptr;  // put it at the end of the ring
    G* g = nullptr;        // run its commit step
    Commit commit = nullptr;
    void* argument = nullptr;
    stack::Stack* stack = nullptr;  // nobody is on it any more: reuse it
  } left;
  base::Fiber* left_fiber = nullptr;  // for sanitizers

  // The one it runs on; null: the thread's own.
  stack::Stack* current_stack() const { return current != nullptr ? current->stack : loop_stack; }

  // the thread's own stack, while it is suspended
  void* native_sp = nullptr;
  base::Fiber native_fiber;

  // guarded by Idle's lock until wake_up is set, then the thread's
  bool listed = false;  // on Idle's list
  M* next_idle = nullptr;
  M* previous_idle = nullptr;
  P* handed = nullptr;  // the P to go on with; null: the runtime ends
  bool handed_searching = false;

  base::Event wake_up;
  pthread_t thread{};
  int timer_slack_before_ns = 0;  // the thread's own
  int pinned_to = -1;             // CPU; -1: not pinned
  void* signal_stack = nullptr;
};

}  // namespace magpie::sched
