// summary.h: what a trace says, as plain data. Made by Analyzer, read by the command, the view
// and the tests. All times are nanoseconds, since the trace began or as durations. A site is the
// pc of the code that go() was given; 0 stands for goroutines of which the trace does not tell.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/histogram.h"
#include "analysis/states.h"

namespace magpie::analysis {

// Where the time of a goroutine goes. Every nanosecond of its life is in exactly one part.
enum class Part : std::uint8_t {
  blocked,        // parked
  own_queue,      // runnable in the ring of a P
  global_queue,   //
  next_slot,      // in runnext
  thief,          // taken by a thief that does not run it yet
  off_cpu,        // a thread was woken for it and is not on a CPU yet
  running,        // on a P
  stopped,        // preempted in place, waits for its turn
  inbox,          // of a P, put there by others
  urgent_line,    //
  fresh,          // started, never put into a line
  blocking_call,  // in blocking(), or blocked undeclared
  without_p,      // runs although its P was taken
  unknown,        // the trace does not tell
};
inline constexpr int kParts = 14;
const char* text(Part part);

struct Parts {
  std::array<std::int64_t, kParts> ns{};
  std::int64_t& operator[](Part part) { return ns[static_cast<std::size_t>(part)]; }
  std::int64_t operator[](Part part) const { return ns[static_cast<std::size_t>(part)]; }
  Parts& operator+=(const Parts& other);
  Parts operator-(const Parts& other) const;
  std::int64_t sum() const;
};
using Anatomy = Histogram<Parts>;  // of a whole, with its parts

struct SiteSummary {
  std::uint64_t site = 0;
  std::uint64_t started = 0, ended = 0, alive = 0;  // alive: at the end of the trace
  std::uint64_t runs = 0, preempted = 0, blocked_undeclared = 0;
  Parts total;    // of all its goroutines
  Anatomy lives;  // of those that the trace saw from the start to the end
};

struct RegionSummary {
  std::string name;
  Anatomy times;  // from region_begin to region_end, on one goroutine
};

struct ProcSummary {
  std::int64_t running_ns = 0;    // a goroutine runs
  std::int64_t searching_ns = 0;  // its thread looks for work
  std::int64_t scheduler_ns = 0;  // held by a thread that does neither: between goroutines, polling
  std::int64_t handed_over_ns = 0;  // on its way to another thread
  std::int64_t idle_ns = 0;
  std::uint64_t runs = 0, polls = 0, empty_polls = 0, timers = 0, searches = 0, found = 0;
  std::uint64_t wakes = 0, parks = 0, spills = 0, spilled = 0, global_takes = 0;
  std::uint64_t next_slot_returns = 0;  // runs of the goroutine before last, from runnext
};

struct StealCell {
  std::uint64_t misses = 0, hits = 0, moved = 0, from_next_slot = 0;
  std::uint64_t ran = 0;          // of the first goroutine of a steal, how often it was seen to run
  std::int64_t until_ran_ns = 0;  // sum, from the steal
  std::int64_t longest_ns = 0;    //
  std::int64_t age_ns = 0;        // sum, from being ready to the steal
};

// Why a P idled beside a goroutine that could have run.
enum class Cause : std::uint8_t {
  no_wake,        // nobody was woken: the only one that is always a fault
  waking,         // a thread was woken and does not run yet
  one_at_a_time,  // more than one P idles; the thread that is woken, or searches, wakes the next
  searching,      // a thread searches and has not found it yet
  between,        // the thread of a P has left one goroutine and has not begun with another yet
  next_slot,      // it waits in runnext of a busy P, which it gets at once
  not_for_all,    // in an inbox or the stopped line, or reserved by its P
  handing_over,   // the P was taken from a goroutine and is on its way to another thread
  world_stopped,  //
};
inline constexpr int kCauses = 9;
const char* text(Cause cause);

struct Waste {  // one interval in which Ps idled and no wake-up was sent
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int32_t proc = -1;       // that idled
  std::uint64_t goroutine = 0;  // that had waited longest
  std::uint64_t site = 0;
  Place place = Place::ring;
};

struct WorkConservation {
  std::array<std::int64_t, kCauses> wasted_ns{};  // P time
  std::uint64_t violations = 0;                   // intervals of Cause::no_wake over the limit
  std::vector<Waste> worst;                       // of them, longest first
  std::int64_t total_ns() const;
};

struct Wait {
  std::uint64_t goroutine = 0, site = 0, object = 0;
  std::uint8_t reason = 0;
  std::int64_t begin_ns = 0, duration_ns = 0;
  std::uint64_t waker = 0;
  bool ended = false;  // false: it still waits when the trace ends
};
struct WaitClass {  // waits of one reason by goroutines of one site
  std::uint8_t reason = 0;
  std::uint64_t site = 0, count = 0;
  std::int64_t sum_ns = 0, longest_ns = 0;
};

struct BlockEdge {  // goroutines of one site waited until goroutines of the other woke them
  std::uint64_t waiter_site = 0, waker_site = 0;
  Source source = Source::goroutine;
  std::uint8_t reason = 0;
  std::uint64_t count = 0;
  std::int64_t sum_ns = 0, longest_ns = 0;
};

struct Hop {  // one link of a chain of wake-ups, the latest first
  std::uint64_t goroutine = 0, site = 0;
  std::int64_t ready_ns = 0;  // woken (or started) by the next hop of the list
  std::int64_t running_ns =
      0;  // from then until it woke the hop before, or until the end of the chain
  std::int64_t queued_ns = 0;  //
  std::int64_t other_ns = 0;   // blocked on something else meanwhile, or in a blocking call
  Source source = Source::goroutine;
};
struct Chain {
  std::uint64_t hops = 0;  // all of them; `last` has the latest
  std::int64_t begin_ns = 0, end_ns = 0;
  std::vector<Hop> last;
};

struct Oldest {  // in one line
  std::uint64_t goroutine = 0, site = 0;
  std::int64_t at_ns = 0, age_ns = 0;
};

struct LongRun {
  std::uint64_t goroutine = 0, site = 0;
  std::int32_t proc = -1;
  std::int64_t begin_ns = 0, duration_ns = 0;
};

struct PingPong {  // two goroutines that hand a P to each other by its runnext
  std::uint64_t first = 0, second = 0;
  std::int32_t proc = -1;
  std::uint64_t turns = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
};

struct StillWaits {  // an edge of the wait-for graph, at the end of the trace
  std::uint64_t goroutine = 0, site = 0, object = 0;
  std::uint8_t reason = 0;
  std::int64_t for_ns = 0;
};

struct Summary {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint64_t events = 0, lost = 0;
  std::array<std::uint64_t, 256> kinds{};  // events by kind
  std::vector<ProcSummary> procs;
  // By thief, then by victim. Square, if there are not thousands of Ps.
  std::vector<std::vector<StealCell>> steals;
  std::vector<SiteSummary> sites;  // by total time that is not blocked, largest first
  std::vector<RegionSummary> regions;
  Histogram<> ready_to_running;
  std::array<Histogram<>, kPlaces> ready_to_running_by_place;
  std::array<Oldest, kPlaces> oldest;
  WorkConservation work;
  std::vector<WaitClass> waits;     // largest sum first
  std::vector<Wait> longest_waits;  // longest first
  std::vector<BlockEdge> blockers;  // largest sum first
  Chain longest_chain;              // most hops
  Chain critical_path;              // back from the last goroutine that ended, or ran
  std::vector<LongRun> longest_runs;
  std::vector<PingPong> ping_pong;  // longest first
  std::vector<StillWaits> still_waiting;
  std::uint64_t goroutines_started = 0, goroutines_ended = 0, goroutines_alive = 0;
  std::uint64_t threads = 0;            // that ever held a P
  std::uint64_t most_without_p = 0;     // goroutines at one time
  std::uint64_t wakes_for_nothing = 0;  // threads woken that searched and found nothing
  // All Ps silent at once although goroutines ran or could run: the process was not on any CPU.
  std::uint64_t silences = 0;
  std::int64_t silent_ns = 0, longest_silence_ns = 0;
  // What the kernel says of the CPU quota; all 0: none, or the runtime did not look.
  std::uint64_t quota_periods = 0, throttled_periods = 0;
  std::int64_t throttled_ns = 0;  // of all CPUs
  double quota = 0;               // in CPUs, the last one

  std::int64_t duration_ns() const { return end_ns - begin_ns; }
};

}  // namespace magpie::analysis
