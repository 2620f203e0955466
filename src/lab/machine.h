// machine.h: a machine of up to 4096 Ps that runs goroutines in simulated time.
//
// Each P goes through the steps of find_work(), in the order and with the decisions of the product
// (sched/policy.h), and each step takes the time that Costs says. What happens at one instant
// happens in a fixed order, and all chance comes from one seed: equal inputs give equal results.
//
//              find                    nothing at hand
//     running ------> at hand? -------------------------> searching --> spinning --> idle
//        ^               |   timers, look, runnext,           | steal       |          |
//        +---------------+   ring, inbox, global              |             |          | woken
//        +----------------------------------------------------+-------------+----------+
//
// A thief decides on a victim by what it sees, and takes when its look is over: meanwhile another
// may have been there, as in the product. Left out: preemption, blocking calls, the network poller
// (what comes from outside stands in the urgent line), and contention on the global lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "analysis/histogram.h"
#include "base/random.h"
#include "lab/costs.h"
#include "lab/policy.h"
#include "lab/ring.h"
#include "lab/victims.h"

namespace magpie::lab {

using TaskId = std::uint32_t;
inline constexpr TaskId kNoTask = ~TaskId{0};

enum class What : std::uint8_t {
  spawn,  // other, made by Machine::make()
  wake,   // other; if it does not wait, its next park returns at once
  park,   //
  yield,  //
  sleep,  // for `sleep_ns`
  end     //
};

// A goroutine computes, and then does something.
struct Step {
  Ns compute = 0;
  What what = What::end;
  TaskId other = kNoTask;
  Ns sleep_ns = 0;
};

class Machine;

class Load {
 public:
  virtual ~Load() = default;
  virtual void begin(Machine& machine) = 0;
  virtual Step step(Machine& machine, TaskId task) = 0;
  // Called at the time asked for by Machine::call_at().
  virtual void called(Machine&, std::uint64_t) {}
};

struct Setup {
  std::uint32_t procs = 1;
  std::uint32_t cpus = 0;  // fewer than procs: the kernel lets them take turns; 0: one each
  Ns cpu_slice = 3'000'000;
  Costs costs;
  Policy policy;
  Topology topology;
  std::uint64_t seed = 1;
  Ns until = 0;            // ends then; 0: when nothing is left to do
  bool all_awake = false;  // all Ps search when time begins
};

struct Result {
  Ns time = 0;              // until the last goroutine ended, or Setup::until
  std::uint64_t turns = 0;  // goroutines that began to run, or went on
  std::uint64_t ended = 0;  //
  std::uint64_t steals = 0, far_steals = 0, stolen = 0, runnext_stolen = 0, probes = 0;
  std::uint64_t cache_steals = 0;  // from a P under the same cache
  std::uint64_t shared = 0,
                far_shared = 0;  // taken from the global queue; from another node's shard
  std::uint64_t wakes = 0, spills = 0, searches = 0;
  Ns computing = 0, searching = 0, scheduling = 0;  // P time
  analysis::Histogram<> latency;                    // from ready to running
  double waits = 0, squared_waits = 0;              // sums of latencies and of their squares

  double steals_per_second() const;
  double mean_wait() const;        //
  double fairness() const;         // Jain's index of the waits: 1 if all are equal
  double cost_per_turn() const;    // P time of the scheduler, without idling, per turn
  double searching_share() const;  // of all P time that is not idle
};

class Machine {
 public:
  Machine(const Setup& setup, Load& load);
  Result run();

  // ---- for loads
  Ns now() const { return now_; }
  base::Random& random() { return random_; }
  double uniform();             // in (0, 1)
  Ns exponential(double mean);  //
  const Setup& setup() const { return setup_; }
  TaskId make();             // a goroutine, not yet started
  void arrive(TaskId task);  // from outside, into the urgent line
  // As What::wake, by nobody of the machine: into the urgent line.
  void wake_from_outside(TaskId task);
  void arrive_at(std::uint32_t p, TaskId task);  // into the ring of this P, which wakes for it
  void start_at(std::uint32_t p, TaskId task);   // before run(): the P begins with it
  void call_at(Ns time, std::uint64_t number);
  // Waits that begin before this time are not counted.
  void count_from(Ns time) { count_from_ = time; }

 private:
  enum class Activity : std::uint8_t {
    idle,      // on the idle list
    waking,    // its thread was woken
    begins,    // looks for work
    acts,      // its goroutine has computed, and does something now
    rounds,    // goes on with the victims of a round
    steals,    // its look at a victim is over
    waits,     // before it takes runnext
    spins,     // until work is visible or its budget is used up
    sees_work  // it spun, and saw some
  };

  struct Task {
    Ns ready_at = 0;
    std::uint32_t last_p = ~std::uint32_t{0};
    bool waits = false, has_token = false, was_woken = false;
  };

  struct Timer {
    Ns time;
    TaskId task;
    bool operator<(const Timer& other) const { return time > other.time; }  // earliest on top
  };

  struct Proc {
    Activity activity = Activity::idle;
    bool is_searching = false, was_patient = false, has_cpu = false, has_duty = false;
    Ns waking_until = 0;
    std::uint32_t epoch = 0;  // events of older ones are void
    TaskId running = kNoTask, runnext = kNoTask;
    Step step;
    Ring<TaskId> batch;  // reserved: older than the ring, not to be stolen
    Ring<TaskId> ring;
    Ring<TaskId> inbox;
    std::int64_t shown = 0;     // how many of them searchers see
    std::vector<Timer> timers;  // a heap
    std::uint32_t timer_tip = kNoVictim, next_timer_look = 0;
    std::int32_t ticks_to_look = 0, turns_to_clock = 0;
    std::uint64_t ticks = 0, inherited = 0, inbox_tick = 0;
    sched::policy::ChainClock chain_clock;
    std::uint32_t budget = sched::policy::kSpinLeast;
    int round = 0;
    std::uint32_t victim = kNoVictim;
    std::uint64_t victim_inherited = 0;
    Ns since = 0;      // searching since
    Ns cpu_since = 0;  // has its CPU since
    std::unique_ptr<Victims> victims;
  };

  struct Event {
    Ns time;
    std::uint64_t order;
    std::uint32_t p;  // kCall: of the load; kTimer: a timer of P `epoch`
    std::uint32_t epoch;
    std::uint64_t number;
    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};  // not a P
  static constexpr Ns kCopy = 1;                               // per goroutine that moves
  static constexpr std::uint32_t kCall = ~std::uint32_t{0};
  static constexpr std::uint32_t kTimer = kCall - 1;

  struct View {
    std::uint32_t searching, idle;
  };

  // Of the global queue, as in sched/core/global_queue.h.
  struct Queued {
    TaskId task = kNoTask;
    Ns since = 0;
  };
  struct Shard {
    Ring<Queued> urgent, usual;
  };

  enum class Usual : std::uint8_t { share, spared };  // of a line that has not stood still

  // events
  void push(Ns time, std::uint32_t p, std::uint32_t epoch, std::uint64_t number);
  void go_on(std::uint32_t p, Activity activity, Ns cost);
  void step_of(std::uint32_t p);
  void timer_due();
  bool some_timer_is_due() const { return due_timer() != kNoVictim; }
  std::uint32_t due_timer() const;  // of which P; kNoVictim: of none

  // CPUs
  bool take_cpu(std::uint32_t p);
  void give_cpu(std::uint32_t p);

  // finding work: each returns the goroutine, and adds to `cost`
  void find(std::uint32_t p);
  TaskId take_due_timers(std::uint32_t p, std::uint32_t owner, Ns& cost);
  TaskId take_at_hand(std::uint32_t p, Ns& cost);
  TaskId look_around(std::uint32_t p, Ns& cost);
  TaskId take_inbox(std::uint32_t p);
  TaskId take_global(std::uint32_t p, Ns& cost);
  bool lines_are_empty() const;
  bool urgent_is_empty() const;
  std::size_t take_lines(std::uint32_t p, std::vector<TaskId>& out, std::size_t most, Usual usual);
  std::size_t take_line(std::uint32_t p, Ring<Queued> Shard::*line, std::vector<TaskId>& out,
                        std::size_t most, Usual usual);
  TaskId pop(std::uint32_t p);
  void begin_search(std::uint32_t p, Ns cost);
  void go_round(std::uint32_t p, Ns cost);
  void try_steal(std::uint32_t p);
  void try_runnext(std::uint32_t p);
  void spin(std::uint32_t p, Ns cost);
  void end_spin(std::uint32_t p);
  void rest(std::uint32_t p, Ns cost);
  void end_search(std::uint32_t p, Ns& cost);
  void found(std::uint32_t p, TaskId task, Ns cost);

  // running
  void act(std::uint32_t p);
  void next_step(std::uint32_t p, Ns cost);

  // publishing
  void put_next(std::uint32_t p, TaskId task, Ns& cost);
  void put_last(std::uint32_t p, TaskId task, Ns& cost);
  void put_woken(std::uint32_t p, const std::vector<TaskId>& woken, Ns& cost);
  bool has_room(const Proc& proc) const;
  bool is_empty(const Proc& proc) const;
  void spill(std::uint32_t p, TaskId task, Ns& cost);
  void wake_searcher(std::uint32_t waker, Ns& cost);
  std::uint32_t start_idle(std::uint32_t waker, Ns after);
  void set_idle(std::uint32_t p);
  void take_idle(std::uint32_t p);
  void changed(std::uint32_t p);
  void make_visible(std::int64_t by);
  View view() const { return {searching_, static_cast<std::uint32_t>(idle_.size())}; }
  bool is_near(std::uint32_t a, std::uint32_t b) const { return setup_.topology.are_near(a, b); }

  Setup setup_;
  Load& load_;
  base::Random random_;
  Ns now_ = 0, count_from_ = 0;
  std::uint64_t order_ = 0;
  std::vector<Event> events_;  // a heap
  std::vector<Task> tasks_;
  std::vector<TaskId> free_;
  std::vector<Proc> procs_;
  std::vector<std::uint32_t> waiting_;  // in the ring of each P, for orders by load
  std::vector<std::uint32_t> idle_;     // last in, first out
  sched::IdleMask idle_mask_;
  std::vector<std::uint32_t> spinners_;
  std::uint32_t searching_ = 0;
  std::uint64_t alive_ = 0, timers_ = 0, calls_ = 0;
  bool duty_is_taken_ = false;
  std::int64_t visible_ = 0;   // goroutines that a searcher would see
  std::vector<Shard> shards_;  // one for each node
  std::uint32_t cpus_left_ = 0;
  Ring<std::uint32_t> wait_for_cpu_;
  Result result_;
};

}  // namespace magpie::lab
