// work_test.cc: the work-conservation check names lost wake-ups, and nothing else.

#include "analysis/work.h"

#include <gtest/gtest.h>

#include "analysis/report.h"
#include "unit/analysis/events.h"

namespace magpie::analysis {
namespace {

std::int64_t wasted(const Summary& summary, Cause cause) {
  return summary.work.wasted_ns[static_cast<std::size_t>(cause)];
}

bool finds(const Summary& summary, const std::string& id) {
  for (const Finding& finding : examine(summary, {}))
    if (finding.id == id) return true;
  return false;
}

// P 0 runs goroutine 1 for 10 ms. P 1 idles. At 1 ms goroutine 2 comes into P 0's ring.
std::vector<Event> begin_of_a_wait() {
  return {event(0, 0, Kind::proc_begin, {11}), event(0, 0, Kind::create, {1, 100, 1}),
          event(0, 0, Kind::run, {1, 1}), event(1'000'000, 0, Kind::create, {2, 200, 1})};
}

TEST(WorkConservation, ALostWakeUpIsNamedWithGoroutinePAndLine) {
  std::vector<Event> events = begin_of_a_wait();
  events.push_back(event(9'000'000, 0, Kind::end));
  events.push_back(event(9'000'010, 0, Kind::run, {2, 1}));
  events.push_back(event(9'500'000, 0, Kind::end));
  const Summary summary = analyse(events);
  EXPECT_EQ(wasted(summary, Cause::no_wake), 8'000'000);
  ASSERT_EQ(summary.work.violations, 1u);
  const Waste& waste = summary.work.worst.at(0);
  EXPECT_EQ(waste.goroutine, 2u);
  EXPECT_EQ(waste.proc, 1);
  EXPECT_EQ(waste.place, Place::ring);
  EXPECT_EQ(waste.begin_ns, 1'000'000);
  EXPECT_EQ(waste.end_ns, 9'000'000);
  EXPECT_TRUE(finds(summary, "lost-wake-up"));
}

TEST(WorkConservation, AWakeUpThatIsStillWaitedForAtTheEndIsNamedToo) {
  const Summary summary = analyse(begin_of_a_wait(), 2, 5'000'000);
  EXPECT_EQ(summary.work.violations, 1u);
  EXPECT_EQ(summary.work.worst.at(0).goroutine, 2u);
}

TEST(WorkConservation, AWokenThreadThatIsNotOnACpuYetIsNoViolation) {
  std::vector<Event> events = begin_of_a_wait();
  events.push_back(event(1'000'200, 0, Kind::thread_wake, {1}));
  events.push_back(event(8'000'000, 1, Kind::proc_begin, {12}));
  events.push_back(event(8'000'100, 1, Kind::steal, {0, 1, 0}));
  events.push_back(event(8'000'200, 1, Kind::run, {2, number(Place::stolen)}));
  const Summary summary = analyse(events);
  EXPECT_EQ(summary.work.violations, 0u);
  EXPECT_EQ(wasted(summary, Cause::no_wake), 200);
  EXPECT_EQ(wasted(summary, Cause::waking), 8'000'000 - 1'000'200);
  EXPECT_FALSE(finds(summary, "lost-wake-up"));
}

// The kernel stops the waker between the line and the wake-up. Meanwhile another P steals.
TEST(WorkConservation, AWakeUpThatTheKernelHeldUpIsNoViolation) {
  for (const bool is_stolen : {false, true}) {
    std::vector<Event> events = begin_of_a_wait();
    if (is_stolen) {
      events.push_back(event(3'000'000, 2, Kind::proc_begin, {13}));
      events.push_back(event(3'000'100, 2, Kind::run, {2, number(Place::stolen)}));
    }
    events.push_back(event(8'000'000, 0, Kind::thread_wake, {1}));
    const Summary summary = analyse(events, 3, 8'000'000);
    EXPECT_EQ(summary.work.violations, 0u) << is_stolen;
    EXPECT_EQ(wasted(summary, Cause::no_wake), 0) << is_stolen;
  }
}

TEST(WorkConservation, AWakeUpForAnotherGoroutineExplainsNothing) {
  std::vector<Event> events = begin_of_a_wait();
  events.push_back(event(8'000'000, 0, Kind::create, {3, 200, 1}));
  events.push_back(event(8'000'100, 0, Kind::thread_wake, {1}));
  EXPECT_EQ(analyse(events, 2, 8'000'200).work.violations, 1u);
}

TEST(WorkConservation, ASearchingThreadIsOnItsWay) {
  std::vector<Event> events = {event(0, 2, Kind::proc_begin, {13}),
                               event(0, 2, Kind::search_begin)};
  for (const Event& one : begin_of_a_wait()) events.push_back(one);
  events.push_back(event(3'000'000, 2, Kind::search_end, {1}));
  events.push_back(event(3'000'000, 2, Kind::run, {2, number(Place::stolen)}));
  const Summary summary = analyse(events, 3);
  EXPECT_EQ(wasted(summary, Cause::searching), 2'000'000);
  EXPECT_EQ(summary.work.violations, 0u);
}

// The kernel may keep a thread off its CPU at any place. A thread that holds a P and runs nothing
// looks into all lines next.
TEST(WorkConservation, AThreadBetweenTwoGoroutinesIsOnItsWay) {
  const Summary summary =
      analyse({event(0, 0, Kind::proc_begin, {11}), event(0, 0, Kind::create, {1, 100, 1}),
               event(0, 0, Kind::run, {1, 1}), event(10, 0, Kind::park, {5, 0}),
               event(20, 0, Kind::ready, {1, number(Place::ring), 1}),
               event(4'000'020, 0, Kind::run, {1, 1})});
  EXPECT_EQ(wasted(summary, Cause::between), 4'000'000);
  EXPECT_EQ(summary.work.violations, 0u);
}

// P 0 is taken from goroutine 1 while goroutine 2 is in its ring. A thread is woken for it.
TEST(WorkConservation, APThatWasHandedOverIsNoViolation) {
  std::vector<Event> events = begin_of_a_wait();
  events.push_back(event(1'000'000, 0, Kind::taken, {0, 1, number(trace::Why::used_its_slice)}));
  events.push_back(event(1'000'000, 0, Kind::proc_end));
  events.push_back(event(1'000'000, 0, Kind::thread_wake, {0}));
  events.push_back(event(9'000'000, 0, Kind::proc_begin, {12}));
  events.push_back(event(9'000'000, 0, Kind::run, {2, 1}));
  const Summary summary = analyse(events);
  EXPECT_EQ(wasted(summary, Cause::handing_over), 8'000'000);
  EXPECT_EQ(summary.procs[0].handed_over_ns, 8'000'000);
  EXPECT_EQ(summary.work.violations, 0u);
}

// A thread without a P woke a searcher, for P 2. P 1 is the searcher's to wake.
TEST(WorkConservation, AThreadThatComesForAPWakesTheNext) {
  std::vector<Event> events = begin_of_a_wait();
  events.push_back(event(1'000'000, 2, Kind::thread_wake, {2}));
  events.push_back(event(1'000'000, 0, Kind::create, {3, 200, 1}));
  const Summary summary = analyse(events, 3, 9'000'000);
  EXPECT_EQ(wasted(summary, Cause::handing_over), 8'000'000);
  EXPECT_EQ(wasted(summary, Cause::one_at_a_time), 8'000'000);
  EXPECT_EQ(summary.work.violations, 0u);
}

TEST(WorkConservation, WhereEventsWereLostNothingIsCalledAFault) {
  std::vector<Event> events = begin_of_a_wait();
  events.push_back(event(9'000'000, 0, Kind::lost, {5}));
  const Summary summary = analyse(events, 2, 9'500'000);
  ASSERT_TRUE(finds(summary, "lost-wake-up"));
  for (const Finding& finding : examine(summary, {}))
    EXPECT_NE(finding.weight, Finding::Weight::fault) << finding.id;
}

TEST(WorkConservation, TheNextSlotOfABusyPIsNotForOthers) {
  std::vector<Event> events = begin_of_a_wait();
  events.back().args[2] = number(Place::runnext);
  events.push_back(event(2'000'000, 0, Kind::end));
  events.push_back(event(2'000'000, 0, Kind::run, {2, 0}));
  const Summary summary = analyse(events);
  EXPECT_EQ(wasted(summary, Cause::next_slot), 1'000'000);
  EXPECT_EQ(summary.work.violations, 0u);
}

// Each newcomer to the next slot sends the one before it into the ring. No event tells that.
TEST(WorkConservation, WhatLeftTheNextSlotOfABusyPIsForOthers) {
  std::vector<Event> events = {event(0, 0, Kind::proc_begin, {11}),
                               event(0, 0, Kind::create, {1, 100, 1}),
                               event(0, 0, Kind::run, {1, 1})};
  events.push_back(event(1'000'000, 0, Kind::create, {2, 200, number(Place::runnext)}));
  events.push_back(event(3'000'000, 0, Kind::create, {3, 200, number(Place::runnext)}));
  const Summary summary = analyse(events, 2, 5'000'000);
  EXPECT_EQ(wasted(summary, Cause::next_slot), 2'000'000);
  EXPECT_EQ(wasted(summary, Cause::no_wake), 2'000'000);
  ASSERT_EQ(summary.work.violations, 1u);
  EXPECT_EQ(summary.work.worst.at(0).goroutine, 2u);
  EXPECT_EQ(summary.work.worst.at(0).place, Place::ring);
  EXPECT_EQ(summary.work.worst.at(0).begin_ns, 3'000'000);
}

TEST(WorkConservation, WhatASearchDidNotFindIsReservedForItsP) {
  std::vector<Event> events = begin_of_a_wait();
  events.push_back(event(1'000'200, 0, Kind::thread_wake, {1}));
  events.push_back(event(1'010'000, 1, Kind::proc_begin, {12}));
  events.push_back(event(1'010'100, 1, Kind::search_begin));
  events.push_back(event(1'020'000, 1, Kind::search_end, {0}));
  events.push_back(event(1'020'100, 1, Kind::thread_park));
  events.push_back(event(1'020'200, 1, Kind::proc_end));
  const Summary before = analyse(events, 2, 5'000'000);
  EXPECT_EQ(before.work.violations, 0u);
  EXPECT_GT(wasted(before, Cause::not_for_all), 3'900'000);
  // One that came while it searched is not explained by it.
  events.insert(events.begin() + 7, event(1'015'000, 0, Kind::create, {3, 200, 1}));
  const Summary summary = analyse(events, 2, 5'000'000);
  ASSERT_EQ(summary.work.violations, 1u);
  EXPECT_EQ(summary.work.worst.at(0).goroutine, 3u);
}

// A trace of a hundred million events would need gigabytes otherwise.
TEST(WorkConservation, NothingIsRememberedOfGoroutinesThatHaveRun) {
  AnalyzerOptions options;
  options.procs = 1;
  Analyzer analyzer(options);
  analyzer.add(event(0, 0, Kind::proc_begin, {11}));
  for (std::uint64_t g = 1; g <= 1000; ++g) {
    const auto at = static_cast<std::int64_t>(1000 * g);
    analyzer.add(event(at, 0, Kind::create, {g, 100, number(Place::ring)}));
    analyzer.add(event(at + 100, 0, Kind::run, {g, number(Place::ring)}));
    analyzer.add(event(at + 200, 0, Kind::end));
  }
  EXPECT_EQ(analyzer.work().remembered(), 0u);
}

TEST(WorkConservation, AStoppedWorldIsNoViolation) {
  std::vector<Event> events = {event(500'000, -1, Kind::stop_world)};
  std::vector<Event> wait = begin_of_a_wait();
  events.insert(events.begin(), wait.begin(), wait.end() - 1);
  events.push_back(wait.back());
  events.push_back(event(2'000'000, -1, Kind::start_world));
  events.push_back(event(2'000'010, 0, Kind::end));
  events.push_back(event(2'000'020, 0, Kind::run, {2, 1}));
  const Summary summary = analyse(events);
  EXPECT_EQ(wasted(summary, Cause::world_stopped), 1'000'000);
  EXPECT_EQ(summary.work.violations, 0u);
}

TEST(WorkConservation, PsThatAreNotInUseDoNotIdle) {
  std::vector<Event> events = {event(0, -1, Kind::procs, {1})};
  for (const Event& one : begin_of_a_wait()) events.push_back(one);
  EXPECT_EQ(analyse(events, 2, 5'000'000).work.total_ns(), 0);
}

TEST(Doctor, AHealthyTraceHasNothing) {
  EXPECT_TRUE(examine(analyse(stolen_and_blocked()), {}).empty());
}

TEST(Doctor, ABlockedPIsFound) {
  const Summary summary =
      analyse({event(0, 0, Kind::proc_begin, {1}), event(0, 0, Kind::create, {1, 100, 1}),
               event(10, 0, Kind::run, {1, 1}),
               event(100'000, -1, Kind::taken, {0, 1, number(trace::Why::blocks_undeclared)}),
               event(500'000, 0, Kind::back, {1})},
              1);
  EXPECT_TRUE(finds(summary, "blocked-p"));
}

TEST(Doctor, APauseOfTheWholeProcessIsFound) {
  std::vector<Event> events = begin_of_a_wait();
  events[0].kind = Kind::proc_begin;
  std::int64_t now = 1'000'000;
  for (int i = 0; i < 5; ++i) {  // as a quota does: 60 ms on, 40 ms off
    for (int k = 0; k < 60; ++k) events.push_back(event(now += 1'000'000, 0, Kind::queue, {1, 0}));
    now += 40'000'000;
  }
  events.push_back(event(now, 0, Kind::queue, {1, 0}));
  const Summary summary = analyse(events, 1);
  EXPECT_EQ(summary.silences, 5u);
  EXPECT_TRUE(finds(summary, "throttled"));
}

// Ten periods of 100 ms, of which `throttled` were cut short, with 8 Ps and a quota of 1.5 CPUs.
Summary summary_with_quota(std::uint64_t throttled) {
  std::vector<Event> events = begin_of_a_wait();
  events.push_back(event(1'000'000'000, -1, Kind::quota, {6, throttled, 400'000'000, 1'500}));
  events.push_back(event(1'000'000'001, -1, Kind::quota, {4, 0, 0, 1'500}));
  return analyse(events, 8);
}

TEST(Doctor, AQuotaThatStopsTheProcessIsFoundAndTheCureNamed) {
  const Summary summary = summary_with_quota(3);
  EXPECT_EQ(summary.quota_periods, 10u);
  EXPECT_EQ(summary.throttled_periods, 3u);
  EXPECT_EQ(summary.throttled_ns, 400'000'000);
  EXPECT_EQ(summary.quota, 1.5);
  EXPECT_TRUE(finds(summary, "quota"));
  EXPECT_FALSE(finds(summary, "throttled"));
  const QuotaUse use{10, 3, 400'000'000, 1.5};
  const auto found = finding_of(use, 8);
  ASSERT_TRUE(found);
  EXPECT_NE(found->shown_by.find("in 3 of 10 periods, for 400 ms"), std::string::npos);
  EXPECT_NE(found->advice.find("now 1.5 CPUs"), std::string::npos);
  EXPECT_NE(found->advice.find("set it to 2."), std::string::npos);
  // With no more Ps than the quota allows, the number of Ps is not to blame.
  EXPECT_EQ(finding_of(use, 2)->advice.find("Ps use it up"), std::string::npos);
}

TEST(Doctor, AQuotaThatIsHitNowAndThenDoesNotHurt) {
  EXPECT_FALSE(finds(summary_with_quota(0), "quota"));
  EXPECT_FALSE(finding_of({.periods = 100, .throttled_periods = 4, .throttled_ns = 9}, 4));
  EXPECT_TRUE(finding_of({.periods = 100, .throttled_periods = 5, .throttled_ns = 9}, 4));
}

TEST(Doctor, GoroutinesThatNeverEndAreFound) {
  std::vector<Event> events = {event(0, 0, Kind::proc_begin, {1})};
  std::int64_t now = 0;
  for (std::uint64_t g = 1; g <= 200; ++g) {
    events.push_back(event(now += 10, 0, Kind::create, {g, 100, 1}));
    events.push_back(event(now += 10, 0, Kind::run, {g, 1}));
    events.push_back(event(now += 10, 0, Kind::park, {5, 0x77}));
  }
  EXPECT_TRUE(finds(analyse(events, 1, 1'000'000), "leak"));
}

}  // namespace
}  // namespace magpie::analysis
