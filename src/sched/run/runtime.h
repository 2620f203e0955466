// runtime.h: everything that one run() shares, in one place.
#pragma once

#include <cstdint>

#include <magpie/runtime.h>

#include "base/annotations.h"
#include "base/atomic.h"
#include "sched/core/g_pool.h"
#include "sched/core/global_queue.h"
#include "sched/core/p_table.h"
#include "sched/dump/watcher.h"
#include "sched/rest/abandoned_timers.h"
#include "sched/rest/idle.h"
#include "sched/rest/idle_lock.h"
#include "sched/rest/network.h"
#include "sched/rest/search.h"
#include "sched/rest/timer_duty.h"
#include "sched/run/chaos.h"
#include "sched/run/homes.h"
#include "sched/run/layout.h"
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
#include "sched/visit.h"
#include "stack/pools.h"

namespace magpie::sched {

struct Runtime {
  // Throws std::invalid_argument for options that make no sense, std::bad_alloc.
  explicit Runtime(const Options& wanted);

  // Tells this run() from earlier ones, for handles that outlive their run().
  const std::uint64_t generation;

  const LayoutEntry* const layout = layout_for_debuggers();

  const Options options;
  // atomic, a hint: the number of threads that wait in the handler, against a limit. It is beside
  // fields that are hardly ever written, because every M that starts a goroutine reads it.
  base::Atomic<int> preempted{0};
  bool has_enough_preempted() const {
    return preempted.load(base::relaxed) >= options.max_preempted;
  }

  // atomic, a count: bound goroutines that are not stopped ones. A thread counts its goroutine
  // before the goroutine can stand in a queue, and until it has left it. A thread that has the lock
  // of a shard and reads 0 knows that no bound goroutine is in its urgent and usual lines.
  base::Atomic<int> bound{0};

  // Whether sysmon takes the P of a goroutine that runs long.
  bool can_stop_long_runners() const { return options.preempt && preemption.works(); }

  ProcsSource procs_source;

  PTable ps;
  Homes homes;

  Search search;         // [search-or-sleep]
  TimerDuty timer_duty;  // [timer-duty]
  AbandonedTimers abandoned_timers;
  Idle idle{search, ps};
  GlobalQueue global;
  Network network;

  GPools records;
  stack::Pools stacks;
  StackShortage stack_shortage;

  Threads threads;
  World world;
  Pins pins;
  Sysmon sysmon;
  WithoutP without_p;
  Preemption preemption;
  Schedtrace schedtrace;
  Watcher watcher;
  Chaos chaos{DebugOptions::from_environment().chaos_seed};

  LongCalls long_calls;

  // atomic, a count: the next block of goroutine ids; they only have to be unique
  base::Atomic<std::uint64_t> next_ids{1};
  // atomic, a count: goroutines that plain threads started; for people
  base::Atomic<std::uint64_t> started_outside{0};
  base::Atomic<bool> deadlock_reported{false};  // atomic, a hint: once is enough
};

// The runtime that runs. Set before its first M starts and cleared after its last has ended.
// Goroutines may use it freely, other threads only through a Visit. Hidden, as it is read at every
// turn: position-independent code then needs no table look-up.
extern Runtime* runtime __attribute__((visibility("hidden")));

base::Lock& idle_lock() MAGPIE_RETURNS_LOCK(runtime->idle.lock());

// open_to_outsiders() lets plain threads in. close_to_outsiders() keeps them out, and waits until
// all have left.
void open_to_outsiders();
void close_to_outsiders();

// How often plain threads came in so far, modulo 2^32, except threads that called visit_unnoted().
std::uint32_t count_visits();
bool outsiders_came();  // such a plain thread has come in since the runtime opened

}  // namespace magpie::sched
