// runtime.h: everything that one run() shares, in one place.
#pragma once

#include <cstdint>

#include <magpie/runtime.h>

#include "base/annotations.h"
#include "base/atomic.h"
#include "sched/core/g_pool.h"
#include "sched/core/global_queue.h"
#include "sched/core/p_table.h"
#include "sched/rest/abandoned_timers.h"
#include "sched/rest/idle.h"
#include "sched/rest/idle_lock.h"
#include "sched/rest/network.h"
#include "sched/rest/search.h"
#include "sched/rest/timer_duty.h"
#include "sched/run/chaos.h"
#include "sched/run/procs.h"
#include "sched/run/schedtrace.h"
#include "sched/run/world.h"
#include "sched/taking/long_calls.h"
#include "sched/taking/preempt.h"
#include "sched/taking/sysmon.h"
#include "sched/taking/without_p.h"
#include "sched/threads/pin.h"
#include "sched/threads/stack_shortage.h"
#include "sched/threads/threads.h"
#include "stack/pool.h"

namespace magpie::sched {

struct Runtime {
  // Throws std::invalid_argument for options that make no sense, std::bad_alloc.
  explicit Runtime(const Options& wanted);

  // Tells this run() from earlier ones, for handles that outlive theirs.
  const std::uint64_t generation;

  const Options options;
  // atomic, a hint: threads that wait in the handler, against a limit. Beside what is hardly ever written: whoever starts a
  // goroutine looks at it.
  base::Atomic<int> preempted{0};
  bool has_enough_preempted() const {
    return preempted.load(base::relaxed) >= options.max_preempted;
  }

  // Whether sysmon takes the P of a goroutine that runs long.
  bool can_stop_long_runners() const { return options.preempt && preemption.works(); }

  ProcsSource procs_source;

  PTable ps;

  Search search;         // [search-or-sleep]
  TimerDuty timer_duty;  // [timer-duty]
  AbandonedTimers abandoned_timers;
  Idle idle{search};
  GlobalQueue global;
  Network network;

  GPool records;
  stack::Pool stacks;
  StackShortage stack_shortage;

  Threads threads;
  World world;
  Pins pins;
  Sysmon sysmon;
  WithoutP without_p;
  Preemption preemption;
  Schedtrace schedtrace;
  Chaos chaos{DebugOptions::from_environment().chaos_seed};

  LongCalls long_calls;

  // atomic, a count: next block of goroutine ids; only uniqueness counts
  base::Atomic<std::uint64_t> next_ids{1};
  // atomic, a count: goroutines started, or readied, by plain threads; for people
  base::Atomic<std::uint64_t> started_outside{0};
  base::Atomic<bool> deadlock_reported{false};  // atomic, a hint: once is enough
};

// The runtime that runs. Set before its first M starts and cleared after its last ended.
// Goroutines may use it freely; other threads only through a Visit.
// Hidden, as it is read at every turn: position-independent code then needs no table look-up.
extern Runtime* runtime __attribute__((visibility("hidden")));

base::Lock& idle_lock() MAGPIE_RETURNS_LOCK(runtime->idle.lock());

// A plain thread's leave to use the runtime: run() does not tear it down meanwhile. Hold it briefly.
// begin_visit is false when no runtime runs; else end_visit must follow.
[[nodiscard]] bool begin_visit();
void end_visit();

class Visit {
 public:
  Visit();
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  explicit operator bool() const { return alive_; }  // false: no runtime runs

 private:
  bool alive_;
};

// Lets outsiders in; keeps them out and waits until those inside have left.
void open_to_outsiders();
void close_to_outsiders();

// Whether any plain thread has used the runtime since it opened, but for those that said
// visit_unnoted().
bool outsiders_came();

// The calling thread is the library's own, see set_library_thread() in deadlock.h.
void visit_unnoted();

}  // namespace magpie::sched
