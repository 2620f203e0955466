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
#include "sched/announcements.h"
#include "sched/g.h"
#include "sched/grip.h"
#include "sched/in_place.h"
#include "sched/p.h"
#include "sched/stretch.h"
#include "timer/timer.h"

namespace magpie::sched {

struct M;

// A goroutine's step after its registers are saved: tells the world that it waits. Runs on another stack, maybe
// while a waker resumes the goroutine already; m is the M it left. False: it need not wait, it becomes runnable
// at once.
using Commit = bool (*)(M* m, G* g, void* argument);

struct M {
  Grip grip;  // [grip]

  // thread only
  P* p = nullptr;  // null: none held; outside the runtime: it may have been taken
  base::Relaxed<G*> current = nullptr;  // null: the loop runs
  stack::Stack* loop_stack = nullptr;   // the loop's, while it runs
  stack::Stack* spare = nullptr;
  G* start_with = nullptr;                // for the loop on the spare: run this first
  base::Relaxed<bool> searching = false;  // counted in Search
  std::uint32_t spin_budget = 0;          // rounds to search before sleeping; learns
  std::int64_t watch_owed_ns =
      timer::kNever;     // [watch] a timer armed while parking: the armer's part is still to do
  int thread_locks = 0;  // ThreadLocks of the goroutine that is bound to it
  bool is_over = false;  // the thread ends before the runtime does
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
  stack::Stack* current_stack() const {
    G* g = current;
    return g != nullptr ? g->stack : loop_stack;
  }

  // the thread's own stack, while it is suspended
  void* native_sp = nullptr;
  base::Fiber native_fiber;

  // guarded by Idle's lock until wake_up is set, then the thread's
  bool listed = false;  // on Idle's list
  M* next_idle = nullptr;
  M* previous_idle = nullptr;
  P* handed = nullptr;  // the P to go on with; null: the runtime ends
  bool handed_searching = false;
  bool sleeps_in_poller = false;  // see network.h
  InPlace<P> in_place;            // [in-place] it waits with its goroutine, see bound.h

  // Odd while the goroutine is in blocking(), and never the same twice.
  // atomic, a hint: the thread writes, sysmon reads
  base::Atomic<std::uint32_t> blocking_calls{0};
  bool is_in_blocking_call() const { return blocking_calls.load(base::relaxed) % 2 != 0; }
  void begin_or_end_blocking_call() {
    blocking_calls.store(blocking_calls.load(base::relaxed) + 1, base::relaxed);
  }
  // The turns of its P when it went on after it had been stopped: while they stand still the goroutine computes on.
  // The thread writes, sysmon reads.
  base::Relaxed<std::uint64_t> stopped_before_turn = ~std::uint64_t{0};
  base::Atomic<bool> signalled{
      false};  // atomic, unproven: sysmon sent the signal that stops it, see preempt.h

  Successor<M> successor;  // [in-place] the M that got its P

  // sysmon only: it runs without a P, see without_p.h
  struct Away {
    M* next = nullptr;
    bool listed = false;
    bool computes = false;
    Stretch stretch;
    std::int64_t taken_ns = 0;
    std::int64_t looked_ns = 0;
    std::int64_t gap_ns = 0;  // until the next look
  } away;
  Announcement<M> announcement;  // [announce] it gave its P away, see without_p.h

  // fixed once it is known to others
  M* older = nullptr;
  bool never_ran = false;  // there was no thread for it
  bool has_ended = false;  // guarded by Threads' lock: its record may be used again

  base::Event wake_up;
  // Odd while it sleeps in the runtime's own way, and never the same twice.
  // atomic, a hint: the thread writes, the valve reads
  base::Atomic<std::uint32_t> own_sleeps{0};
  pthread_t thread{};
  base::Atomic<pid_t> tid{0};       // atomic, a hint: written before it holds its first P
  std::int64_t handed_over_ns = 0;  // thread only: when blocking() handed its P over; 0: it did not
  int timer_slack_before_ns = 0;    // the thread's own; 0: it still has it
  int pinned_to = -1;               // CPU; -1: not pinned
  void* signal_stack = nullptr;
  bool signal_was_blocked = false;  // thread only: the signal of preemption, before it became an M
};

}  // namespace magpie::sched
