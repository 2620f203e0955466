// p.h: a P, the right to run goroutines, with everything its holder needs at hand.
//
//   idle      on the idle list; no M holds it; its queue is empty
//   running   held by one M
//   stopped   the world is stopped: the thread that stopped it decides
//   unused    beyond procs(); its queue is empty, its counters stay
#pragma once

#include <cstdint>
#include <utility>

#include "base/atomic.h"
#include "base/random.h"
#include "cpus/homes.h"
#include "sched/core/g_pool.h"
#include "sched/core/inbox.h"
#include "sched/core/run_queue.h"
#include "sched/policy.h"
#include "sched/taking/stretch.h"
#include "stack/pools.h"
#include "timer/timer_set.h"
#include "trace/buffer.h"

namespace magpie::sched {

struct M;

enum class PState : std::uint8_t { idle, running, stopped, unused };

// The holder writes these counters, anyone reads them. They are plain: each P has its own.
struct PCounters {
  base::Counter ticks;
  base::Counter inherited;  // goroutines that ran in their waker's turn
  base::Counter goroutines_started, goroutines_ended;
  base::Counter steals_tried, steals_succeeded, goroutines_stolen, runnext_stolen;
  base::Counter steals_near;  // from a P under the same cache
  base::Counter steals_far;   // from a P of another node
  base::Counter overflows, goroutines_spilled, global_batches;
  base::Counter looks;  // looks at work that is not the P's own
  base::Counter parks, wakes, searches, joined_in_place;
  base::Counter timers_fired;
  base::Counter polls, polled;          // polled: goroutines that became ready
  base::Counter handoffs, preemptions;  // sysmon writes them too, while it has the P
  base::Counter searching_ns, held_ns;
};

struct alignas(base::kCacheLine) P {
  explicit P(int number) : index(number), random(static_cast<std::uint64_t>(number) + 1) {}

  // fixed after construction
  const int index;

  // fixed before it is used
  // The holder may set goroutines aside for itself, in the inbox or reserved in the ring. Sysmon
  // can stop a goroutine that keeps them waiting. False: nothing stops such a goroutine, so all
  // goroutines must be where thieves find them.
  bool may_set_aside = true;
  void set_nothing_aside() {
    may_set_aside = false;
    queue.reserve_one_at_a_time();
  }

  // fixed while the world goes on
  cpus::Home home;  // which Ps are near; with Options::pin the CPU of the holder

  // holder only
  // Two countdowns. The first runs to the next look at everything that is not the P's own. The
  // second runs to the next look at the clock in a chain of goroutines taken from runnext. Sysmon
  // sets them to 0 if that takes too long, so the holder tests for 0 or less.
  base::Relaxed<std::int32_t> ticks_to_look = 0;
  base::Relaxed<std::int32_t> turns_to_clock = 0;
  std::uint64_t inbox_tick = 0;  // the tick of the inbox's last turn
  policy::ChainClock chain_clock;
  std::uint64_t slice_turn = 0;  // turns_begun() when the spawner's slice began, see slice.h
  std::int64_t slice_since_ns = 0;
  base::Relaxed<bool> slice_over = false;  // sysmon sets it too, see end_turn_of_joiner()
  // Sysmon sets it: the goroutine gives way at its next entry, see ask_to_give_way().
  base::Relaxed<bool> must_give_way = false;
  int free_cpu = -1;  // the CPU of the thread that sysmon took the P from, see free_cpu.h
  std::uint32_t turns_to_exact_look = 0;  // see own_timers_are_due()
  std::uint64_t next_id = 0;              // the holder may give out ids [next_id, ids_end)
  std::uint64_t ids_end = 0;
  base::Random random;
  bool guesses_in_select = false;  // the last select met most of its cases ready
  policy::Detours detours;
  GCache records;
  stack::Cache stacks;
  std::int64_t stopped_again_ns = 0;  // until then others go before stopped ones, see begin_hold()
  std::uint64_t fire_again_at_tick = 0;  // set after many timers came due together, see fire.cc
  trace::Place came_from = trace::Place::ring;  // for traces, see note_place()
  std::uint64_t traced_inherited = 0;           // counters.inherited at the last `run` event

  // guarded by Idle's lock; by the maker's lock while the P waits for a new thread
  P* next_idle = nullptr;
  P* previous_idle = nullptr;
  bool wanted_by_searcher = false;  // while the P waits for a thread
  std::int64_t wanted_since_ns = 0;

  // Sysmon writes it while it has the P: other goroutines go before stopped ones for this long.
  std::int64_t stopped_pause_ns = 0;

  // sysmon only: what it saw when it last looked
  struct Seen {
    M* holder = nullptr;
    M* asked = nullptr;  // it was asked to give way, and has not been seen to have heard it
    std::uint64_t turns = 0;
    std::uint64_t ticks = 0, looks = 0;
    std::int64_t ticks_since_ns = 0, looks_since_ns = 0;  // when sysmon first saw these values
    std::uint64_t begun = 0;                              // turns_begun()
    std::int64_t begun_since_ns = 0;
    struct Turn {
      std::int64_t since_ns = 0;   // when sysmon first saw the turn
      std::int64_t cpu_ns = 0;     // CPU time of the holder's thread by then
      std::int64_t looked_ns = 0;  // when sysmon last checked whether the thread sleeps
      std::int64_t looked_cpu_ns = 0;
      std::uint32_t blocking_call = 0;
      std::int64_t retry_gap_ns = 0;
      bool is_reported = false;  // as slow
      Stretch stretch;
    } turn;
  } seen;

  base::Atomic<PState> state{PState::unused};  // atomic, a hint: for stats
  // atomic, published: by the holder, for sysmon; null: no M holds it, or it changes hands
  base::Atomic<M*> holder{nullptr};
  base::Atomic<std::int64_t> held_since_ns{0};  // atomic, a hint: 0: no M holds it yet
  // atomic, a hint: the most that stats() has shown as busy, by its callers
  mutable base::Atomic<std::int64_t> busy_shown_ns{0};
  // atomic, a hint: the holder tells thieves that it is starting a thread and will continue soon
  base::Atomic<bool> waking{false};
  PCounters counters;

  // Sysmon calls this when the chain is too long (policy::kLongestChainNs).
  void end_chain() {
    chain_must_end.store(true, base::relaxed);  // relaxed, both: a request
    turns_to_clock = 0;
  }
  base::Atomic<bool> chain_must_end{false};  // atomic, a hint: a request of sysmon's

  // has_out_of_sight: anyone may ask whether goroutines wait here that only the holder can take.
  // is_empty: the holder asks whether nothing waits here.
  bool has_out_of_sight() const { return queue.has_reserved() || !inbox.is_empty(); }
  bool is_empty() const { return queue.is_empty() && inbox.is_empty(); }

  // Goroutines that the P took from a queue. While this stands still, the P runs the same one, and
  // those that it joins in place.
  std::uint64_t turns_begun() const { return counters.ticks.read() + counters.inherited.read(); }
  // Goroutines that ran on this P, in place or not. While this stands still, the P runs the same
  // one.
  std::uint64_t turns() const { return turns_begun() + counters.joined_in_place.read(); }

  // The holder begins or ends holding the P.
  void begin_hold(M* m, std::int64_t now_ns) {
    holder.store(m, base::release);  // [grip] what sysmon learns of m through it is older
    held_since_ns.store(now_ns, base::relaxed);
    // From now on, not since the P was taken: a thread that waits for a CPU may come later than
    // that.
    if (stopped_pause_ns != 0) stopped_again_ns = now_ns + std::exchange(stopped_pause_ns, 0);
  }
  void end_hold(std::int64_t now_ns) {
    holder.store(nullptr, base::relaxed);
    counters.held_ns.add(static_cast<std::uint64_t>(now_ns - held_since_ns.load(base::relaxed)));
    held_since_ns.store(0, base::relaxed);
    if (trace::is_on()) [[unlikely]]
      trace::buffer_of(index).put(trace::ticks_now(), trace::Kind::proc_end);
  }

  timer::TimerSet timers;

  Inbox inbox;
  RunQueue queue;  // [run-queue]
};

}  // namespace magpie::sched
