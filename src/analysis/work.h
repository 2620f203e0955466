// work.h: P time in which a P idled while a goroutine could have run, and why.
//
// Between two events nothing changes, so what is wasted between them is (time) x min(idle Ps,
// runnable goroutines). Each wasted P gets one cause; the causes that explain are asked first,
// and what none of them explains was lost: a goroutine waited, a P idled, and nobody was woken or
// searched.
//
// A search that found nothing explains those that had their place before it began: their P has
// reserved them for itself (sched/core/run_queue.h). Those that came later should have been found,
// or somebody woken for them.
//
// A moment of it is no fault: a waker puts the goroutine into a line first and wakes a thread
// then. So an interval counts as a violation from `limit_ns` on. The kernel may stop the waker
// between the two for longer. Then the wake-up is the next that its P tells of, and explains what
// was lost since the event before it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "analysis/states.h"
#include "analysis/summary.h"

namespace magpie::analysis {

class WorkMeter {
 public:
  explicit WorkMeter(std::int64_t limit_ns) : limit_ns_(limit_ns) {}

  // Call before the event is applied: what was true until now is accounted.
  void advance(const States& states, std::int64_t now_ns);
  // Call after it was applied.
  void note(const States& states, const States::Steps& steps, const Event& event);
  WorkConservation finish(const States& states, std::int64_t end_ns);

  std::uint64_t runnable() const;
  std::uint64_t runnable_for_all() const;  // without what is set aside for one P
  void note_search(const Event& event);
  std::int64_t wasted_ns() const { return wasted_ns_; }
  // Of how many times it remembers who came into a place then.
  std::size_t remembered() const { return newcomers_.size(); }

 private:
  void count(const Goroutine& g, int by);
  void recount(const States& states, std::size_t proc);
  void open_violation(const States& states);
  void close_violation(std::int64_t now_ns);
  void settle_before(std::int64_t time_ns);
  void explain_since(std::int64_t time_ns);

  const std::int64_t limit_ns_;
  WorkConservation result_;
  std::array<std::uint64_t, kPlaces> runnable_{};
  // Of those for all: how many came into their place when, since the last search in vain began.
  std::map<std::int64_t, std::uint64_t> newcomers_;
  std::uint64_t newcomer_count_ = 0;
  std::int64_t looked_until_ns_ = -1;
  std::uint64_t idle_ = 0, handed_over_ = 0, searching_ = 0, between_ = 0, waking_ = 0;
  struct Seen {  // of a P: what it adds to the sums above
    bool idle = false, handed_over = false, searching = false, between = false, waking = false;
    std::int64_t told_ns = 0;          // the time of its last event
    std::int64_t search_begin_ns = 0;  // of its last search
  };
  struct Violation {
    Waste waste;
    std::int64_t lost_ns = 0;  // P time
  };
  std::vector<Seen> seen_;
  std::int64_t last_ns_ = 0;
  std::int64_t lost_since_ns_ = -1;  // begin of the interval in which Cause::no_wake holds
  bool named_ = false;
  Violation open_;
  std::deque<Violation> unsettled_;  // a late wake-up may explain them still
  std::int64_t wasted_ns_ = 0;
};

}  // namespace magpie::analysis
