// analyzer.h: reads the events of a trace in order, once, and makes its Summary.
//
// A goroutine's time is cut at its steps (states.h); each piece goes to one Part, so the parts of
// a life add up to the life by construction. Only the time in a line needs thought: it ends with
// `run`, and is split into: the line it was found in | the thread that was woken for it was not
// on a CPU yet | carried by a thief.
//
//     ready ............. thread_wake ........ proc_begin ....... steal .......... run
//       |  line it is in      |    off_cpu         |  line it is in  |    thief     |
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/states.h"
#include "analysis/summary.h"
#include "analysis/work.h"

namespace magpie::analysis {

struct AnalyzerOptions {
  std::size_t procs = 0;                // in use when the trace begins
  std::int64_t wake_limit_ns = 50'000;  // a wake-up that took longer to be sent is named
  std::int64_t silence_limit_ns = 5'000'000;
  // The text of a string's number, for the names of regions.
  std::function<std::string_view(std::uint64_t)> string;
  // Called for each goroutine when it ends, and by finish() for those that live.
  std::function<void(const Goroutine&, const Parts&, std::uint64_t runs)> on_life;
};

class Analyzer {
 public:
  explicit Analyzer(AnalyzerOptions options = {});

  void add(const Event& event);
  // Everything up to the last event, or `end_ns` if that is later. Call it once.
  Summary finish(std::int64_t end_ns = 0);

  // As of the last event added.
  const States& states() const { return states_; }
  const WorkMeter& work() const { return work_; }
  std::int64_t last_queued_ns() const { return last_queued_ns_; }  // of the last `run`, in its line

 private:
  struct OpenRegion {
    std::uint64_t name = 0;
    std::int64_t begin_ns = 0;
    Parts before;
  };
  struct Life {  // of a goroutine, by its slot
    Parts parts;
    std::uint64_t runs = 0, preempted = 0, blocked_undeclared = 0;
    std::uint64_t wake = 0;   // its latest record in wakes_, by number; 0 none
    std::uint64_t depth = 0;  // hops of the chain that led to it
    std::int64_t chain_begin_ns = 0;
    std::vector<OpenRegion> regions;
  };
  struct Spent {  // of a goroutine's life until some time
    std::int64_t running_ns = 0, queued_ns = 0;
  };
  static constexpr std::size_t kWakeRecords = 1 << 16;
  struct WakeRecord {
    std::uint64_t goroutine = 0, site = 0;
    std::uint64_t waker = 0, waker_site = 0;
    std::uint64_t by = 0;  // the record that had woken the waker; 0: none known
    std::int64_t ready_ns = 0;
    Spent of_goroutine, of_waker;
    Source source = Source::goroutine;
  };
  enum class Activity : std::uint8_t { idle, handed_over, scheduler, searching, running };
  struct Lane {  // what a P does, beside Proc
    Activity activity = Activity::idle;
    std::int64_t since_ns = 0;
    std::int64_t wake_sent_ns = -1;  // to a thread that shall hold it
    std::int64_t stolen_ns = -1;     // the last steal
    std::int32_t victim = -1;
    bool woken = false;  // its thread was, and has found nothing yet
    std::uint64_t last = 0, before_last = 0;
    PingPong turns;
  };

  Life& life(const Goroutine& g);
  Lane& lane(std::int32_t index);
  void account(const Step& step, const Event& event);
  void split_line_time(const Step& step, const Event& event, Parts& parts);
  void begin_run(const Goroutine& g, const Event& event);
  void end_wait(const Step& step, const Event& event);
  void end_life(const Goroutine& g);
  void note_wake(const Event& event);
  void note_region(const Event& event);
  void note_turn(const Goroutine& g, const Event& event);
  void note_of_proc(const Event& event);
  void update_lane(std::int32_t index);
  void charge_lane(std::int32_t index, std::int64_t until_ns);
  void note_silence(const Event& event);
  void note_quota(const Event& event);
  void flush_turns(Lane& lane);
  StealCell& steals(std::int32_t thief, std::int32_t victim);
  SiteSummary& site(std::uint64_t pc);
  const WakeRecord* record(std::uint64_t number) const;  // nullptr: none, or overwritten
  Spent spent(const Goroutine& g) const;
  Chain follow(std::uint64_t wake, std::int64_t end_ns, const Spent& at_end) const;
  void finish_tables();

  AnalyzerOptions options_;
  Summary summary_;
  States states_;
  WorkMeter work_;
  std::vector<Life> lives_;
  std::vector<Lane> lanes_;
  // A combination of up to three numbers; a hash that mixes them all.
  using Key = std::array<std::uint64_t, 3>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      std::uint64_t mixed = 0;
      for (std::uint64_t part : key) mixed = (mixed ^ part) * 0x9e3779b97f4a7c15 + (mixed >> 29);
      return mixed ^ mixed >> 32;
    }
  };
  std::unordered_map<std::uint64_t, SiteSummary> sites_;
  std::map<std::string, Anatomy> regions_;
  std::unordered_map<Key, WaitClass, KeyHash> waits_;     // reason, site
  std::unordered_map<Key, BlockEdge, KeyHash> blockers_;  // waiter, waker, source and reason
  std::unordered_set<std::uint64_t> threads_;
  std::vector<WakeRecord> wakes_;  // the latest, in a ring
  std::uint64_t wake_count_ = 0;   // all; the number of a record, from 1
  std::uint64_t without_p_ = 0;
  std::int64_t last_queued_ns_ = 0;
  struct ChainEnd {
    std::uint64_t wake = 0, hops = 0;
    std::int64_t begin_ns = 0, end_ns = 0;
    Spent spent;
  };
  ChainEnd deepest_, last_;  // the chain with most hops; the chain of the goroutine that ended last
  bool begun_ = false;
};

}  // namespace magpie::analysis
