// stats.h: what the runtime is doing.
#pragma once

#include <magpie/detail/cxx20.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <magpie/detail/api.h>

namespace magpie {

// One P: the right to run goroutines, with its queue. Counters only grow.
struct ProcStats {
  int id = 0;
  bool idle = false;             // no thread holds it
  std::size_t queue_length = 0;  // goroutines in its ring and its inbox, runnext not counted
  bool has_runnext = false;
  std::uint64_t ticks = 0;               // goroutines run in a turn of their own
  std::uint64_t switches = 0;            // goroutines run, also in the turn of their waker
  std::uint64_t goroutines_started = 0;  // made by goroutines running on it
  std::uint64_t goroutines_ended = 0;
  std::uint64_t steals_tried = 0;  // looks at another P's queue
  std::uint64_t steals_succeeded = 0;
  std::uint64_t steals_near = 0;        // of them from Ps under the same last-level cache
  std::uint64_t steals_far = 0;         // of them from Ps of another NUMA node
  std::uint64_t goroutines_stolen = 0;  // moved here by successful steals
  std::uint64_t runnext_stolen = 0;     // how many of them came from a runnext slot
  std::uint64_t overflows = 0;          // full ring, half spilled to the global queue
  std::uint64_t goroutines_spilled = 0;
  std::uint64_t global_batches = 0;   // times it took from the global queue
  std::uint64_t looks = 0;            // times it looked at what is not its own
  std::uint64_t parks = 0;            // times its thread went to sleep for want of work
  std::uint64_t wakes = 0;            // threads woken or made by goroutines on it
  std::uint64_t searches = 0;         // times its thread looked at all queues for work
  std::uint64_t joined_in_place = 0;  // goroutines run in place by join()
  std::uint64_t timers_fired = 0;     // by its thread, also those of other Ps
  std::uint64_t polls = 0;            // times its thread asked the network for events
  std::uint64_t polled = 0;           // goroutines that polls made ready
  std::uint64_t handoffs = 0;  // times it was taken from a goroutine that blocked, or ran too long
  std::uint64_t preemptions = 0;  // hand-offs because the goroutine ran too long
  std::int64_t busy_ns = 0;       // time held by a thread that was not idle
};

struct Stats {
  std::vector<ProcStats> procs;  // the Ps in use now
  ProcStats total;               // sums, Ps no longer in use included; id and idle mean nothing
  std::size_t global_queue_length = 0;
  int idle_procs = 0;
  int threads = 0;
  int idle_threads = 0;
  int searching_threads = 0;
  int goroutines_without_p = 0;  // run, or block, without a P
  int preempted_threads = 0;     // sleep in the middle of a goroutine that waits for its turn
  // How often stopped goroutines had to run on because a thread inside the runtime waited for a
  // lock that one of them held.
  std::uint64_t valve_openings = 0;
  int cpus = 0;          // that the affinity mask allows
  double cpu_quota = 0;  // CPUs' worth of time that the cgroups grant; 0: no limit
  // If the process has a quota: how many of its periods the runtime saw, in how many of them the
  // quota was used up and the kernel stopped the process, and for how long, summed over the CPUs.
  // Looked up about once a second while goroutines run.
  std::uint64_t quota_periods = 0;
  std::uint64_t throttled_periods = 0;
  std::int64_t throttled_ns = 0;
  std::size_t timers = 0;  // armed
  std::size_t goroutines = 0;
  std::size_t fresh = 0;  // started, has not run yet: has no stack
  std::size_t runnable = 0;
  std::size_t running = 0;
  std::size_t waiting = 0;
};

// A snapshot. Each number is right, but not all belong to the same instant. Looks at every
// goroutine, which takes milliseconds if there are a million. Nobody is held up meanwhile: it takes
// no lock for long, and a goroutine that calls it can be stopped. Empty when no runtime runs.
MAGPIE_API Stats stats();

}  // namespace magpie
