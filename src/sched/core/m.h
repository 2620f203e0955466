// m.h: an M, an OS thread of the runtime.
//
// An M always runs on one of three stacks:
//   a goroutine's stack;
//   a pooled stack, on which the loop searches and calls fresh goroutines;
//   the stack the thread was born with, before its first loop and after its last.
// While a goroutine runs, its M holds a spare stack. So blocking never has to allocate: the loop
// continues on the spare.
#pragma once

#include <pthread.h>
#include <sched.h>

#include "base/event.h"
#include "base/random.h"
#include "base/sanitizer.h"
#include "context/exceptions.h"
#include "sched/core/g.h"
#include "sched/core/p.h"
#include "sched/dump/sample.h"
#include "sched/taking/announcements.h"
#include "sched/taking/grip.h"
#include "sched/taking/in_place.h"
#include "sched/taking/stretch.h"
#include "timer/timer.h"

namespace magpie::sched {

struct M;

// A goroutine's commit step tells others that it waits. It runs on another stack, after the
// goroutine's registers are saved. A waker may already resume the goroutine while the step still
// runs. m is the M that the goroutine left. False: the goroutine need not wait and becomes runnable
// at once.
using Commit = bool (*)(M* m, G* g, void* argument);

struct M {
  Grip grip;  // [grip]

  // ---- thread only

  P* p = nullptr;  // null: none held. Outside the runtime: sysmon may have taken it
  base::Relaxed<G*> current = nullptr;  // null: the loop runs
  stack::Stack* loop_stack = nullptr;   // the loop's stack, while the loop runs
  stack::Stack* spare = nullptr;
  G* start_with = nullptr;                // the loop on the spare runs it first
  G* from_stopped = nullptr;              // taken from the stopped line, for admit()
  base::Relaxed<bool> searching = false;  // counted in Search; see Idle
  std::uint32_t spin_budget = 0;          // rounds to search before sleeping; the M adapts it
  P* tip = nullptr;  // work was seen there; a search that finds none elsewhere looks there too
  P* timer_tip = nullptr;             // a timer was due there; the next search looks there first
  std::uint32_t next_timer_look = 0;  // at this P, going round
  // [timer-duty] A goroutine armed a timer while it parked. The M still owes the armer's part.
  std::int64_t timer_owed_ns = timer::kNever;
  int thread_locks = 0;             // ThreadLocks of the goroutine that is bound to this M
  bool is_over = false;             // the thread ends before the runtime does
  std::int64_t handed_over_ns = 0;  // when blocking() handed its P over; 0: it did not
  context::ExceptionState* exceptions = nullptr;

  // After a switch, the side that arrives does these duties for the side that left.
  struct Left {
    G* yielded = nullptr;  // put it at the end of the ring
    G* g = nullptr;        // run its commit step
    Commit commit = nullptr;
    void* argument = nullptr;
    stack::Stack* stack = nullptr;  // nobody is on it any more: reuse it
  } left;
  base::Fiber* left_fiber = nullptr;  // for sanitizers

  // The thread's own stack, while it is suspended.
  void* native_sp = nullptr;
  base::Fiber native_fiber;

  // The stack that the M runs on; null: the thread's own.
  stack::Stack* current_stack() const {
    G* g = current;
    return g != nullptr ? g->stack : loop_stack;
  }

  // ---- guarded by Idle's lock until wake_up is set, then the thread's

  struct Rest {
    bool listed = false;  // on Idle's list
    M* next = nullptr;
    M* previous = nullptr;
    base::Guarded<P*> handed = nullptr;  // the P to go on with; null: the runtime ends
    bool handed_searching = false;
    const P* last_p = nullptr;  // the M held it last; null: none yet
    bool in_poller = false;     // it sleeps in the poller, see network.h
    InPlace<P> in_place;        // [in-place] it waits with its goroutine, see bound.h
  } rest;
  base::Event wake_up;

  // ---- sysmon only: the M runs without a P, see without_p.h

  struct WithoutP {
    M* next = nullptr;
    bool listed = false;
    bool computes = false;
    Stretch stretch;
    std::int64_t taken_ns = 0;
    std::int64_t looked_ns = 0;
    std::int64_t gap_ns = 0;  // until the next look
    // The lock for which the thread slept when it lost its P; 0: none, or nobody has looked.
    std::uintptr_t waits_for = 0;
  } without_p;

  // ---- atomic: the thread or sysmon writes, the other one reads

  // Odd while the goroutine is in blocking(). It never has the same value twice.
  // atomic, a hint: the thread writes, sysmon reads
  base::Atomic<std::uint32_t> blocking_calls{0};
  bool is_in_blocking_call() const { return blocking_calls.load(base::relaxed) % 2 != 0; }
  void begin_or_end_blocking_call() {
    blocking_calls.store(blocking_calls.load(base::relaxed) + 1, base::relaxed);
  }
  // The turns of its P when the M continued after a stop. While the P's turns stand still, the same
  // goroutine still computes. The thread writes, sysmon reads.
  base::Relaxed<std::uint64_t> stopped_before_turn = ~std::uint64_t{0};
  // atomic, unproven: sysmon sent the signal that stops the thread, see preempt.h
  base::Atomic<bool> signalled{false};
  // While the thread is stopped: where the signal interrupted it. For dumps.
  // atomic, published: by the thread; null: it is not stopped
  base::Atomic<const ucontext_t*> stopped_at{nullptr};
  Sample sample;  // a dump asks the thread for its stack
  // Odd while the thread sleeps in one of the runtime's own waits. It never has the same value
  // twice.
  // atomic, a hint: the thread writes, the valve reads
  base::Atomic<std::uint32_t> own_sleeps{0};
  Successor<M> successor;        // [in-place] the M that got this M's P
  Announcement<M> announcement;  // [announce] this M gave its P away, see without_p.h

  // ---- the OS thread: fixed once the M is known to others, or the thread's own

  struct OsThread {
    pthread_t handle{};
    base::Atomic<pid_t> tid{0};     // atomic, a hint: written before the M holds its first P
    int timer_slack_before_ns = 0;  // the thread's own value; 0: the thread still has it
    int pinned_to = -1;             // CPU; -1: not pinned
    int pinned_by = 0;              // the preparation of Pins
    cpu_set_t cpus_before{};        // while it is pinned: the CPUs that it had before
    void* signal_stack = nullptr;
    bool signal_was_blocked = false;  // the preemption signal, before the thread became an M
  } os;

  // ---- the registry of Ms, see threads.h

  M* older = nullptr;      // fixed once the M is known to others
  int number = 0;          // fixed too: how many are older. Dumps and the thread's name have it
  bool never_ran = false;  // fixed too: no thread could be made for it
  bool has_ended = false;  // guarded by Threads' lock: the record may be used again
};

}  // namespace magpie::sched
