// analyzer_test.cc: what a trace means. The traces are made by hand and the answers are known.

#include "analysis/analyzer.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "analysis/report.h"
#include "unit/analysis/events.h"

namespace magpie::analysis {
namespace {

const SiteSummary& site(const Summary& summary, std::uint64_t pc) {
  for (const SiteSummary& one : summary.sites)
    if (one.site == pc) return one;
  ADD_FAILURE() << "no site " << pc;
  static const SiteSummary none;
  return none;
}

TEST(Analyzer, TheTimeInALineIsSplitIntoLineWakingAndThief) {
  const Summary summary = analyse(stolen_and_blocked());
  const Parts& parts = site(summary, 200).total;
  EXPECT_EQ(parts[Part::own_queue], 100 + 300);  // until the wake-up, and until the steal
  EXPECT_EQ(parts[Part::off_cpu], 500);          // from the wake-up to proc_begin
  EXPECT_EQ(parts[Part::thief], 100);
  EXPECT_EQ(parts[Part::running], 500 + 1000);
  EXPECT_EQ(parts[Part::blocked], 2500);
  EXPECT_EQ(parts[Part::next_slot], 1010);
  EXPECT_EQ(parts.sum(), 7010 - 1000);
}

TEST(Analyzer, UtilisationOfAPAddsUpToTheTrace) {
  const Summary summary = analyse(stolen_and_blocked());
  ASSERT_EQ(summary.procs.size(), 2u);
  EXPECT_EQ(summary.procs[0].running_ns, 5990 + 1000);
  EXPECT_EQ(summary.procs[1].running_ns, 500);
  EXPECT_EQ(summary.procs[1].searching_ns, 300 + 200);
  EXPECT_EQ(summary.procs[1].idle_ns, 1600 + 4220);
  for (const ProcSummary& p : summary.procs)
    EXPECT_EQ(p.running_ns + p.searching_ns + p.scheduler_ns + p.handed_over_ns + p.idle_ns,
              summary.duration_ns());
}

TEST(Analyzer, TheStealMatrixHasThiefByVictim) {
  const Summary summary = analyse(stolen_and_blocked());
  const StealCell& cell = summary.steals[1][0];
  EXPECT_EQ(cell.hits, 1u);
  EXPECT_EQ(cell.misses, 3u);
  EXPECT_EQ(cell.moved, 1u);
  EXPECT_EQ(cell.until_ran_ns, 100);
  EXPECT_EQ(summary.steals[0][1].hits, 0u);
}

TEST(Analyzer, ReadyToRunningIsMeasuredForEveryRunFromALine) {
  const Summary summary = analyse(stolen_and_blocked());
  EXPECT_EQ(summary.ready_to_running.count(), 3u);
  EXPECT_EQ(summary.ready_to_running.sum(), 10 + 1000 + 1010);
  EXPECT_EQ(summary.oldest[number(Place::runnext)].goroutine, 2u);
  EXPECT_EQ(summary.oldest[number(Place::runnext)].age_ns, 1010);
}

TEST(Analyzer, WhoBlocksWhomNamesTheWaker) {
  const Summary summary = analyse(stolen_and_blocked());
  ASSERT_EQ(summary.blockers.size(), 1u);
  EXPECT_EQ(summary.blockers[0].waiter_site, 200u);
  EXPECT_EQ(summary.blockers[0].waker_site, 100u);
  EXPECT_EQ(summary.blockers[0].sum_ns, 2500);
  ASSERT_FALSE(summary.longest_waits.empty());
  EXPECT_EQ(summary.longest_waits[0].object, 0xabcu);
  EXPECT_EQ(summary.longest_waits[0].waker, 1u);
}

TEST(Analyzer, TheCriticalPathGoesBackFromWakerToWaker) {
  const Summary summary = analyse(stolen_and_blocked());
  const Chain& path = summary.critical_path;
  ASSERT_EQ(path.hops, 2u);
  EXPECT_EQ(path.last[0].goroutine, 2u);  // made ready by 1 at 5000, queued, ran, over
  EXPECT_EQ(path.last[0].queued_ns, 1010);
  EXPECT_EQ(path.last[0].running_ns, 1000);
  EXPECT_EQ(path.last[1].goroutine, 1u);  // from its start until it readied 2
  EXPECT_EQ(path.last[1].queued_ns, 10);
  EXPECT_EQ(path.last[1].running_ns, 4990);
  EXPECT_EQ(path.begin_ns, 0);
  EXPECT_EQ(path.end_ns, 7010);
}

TEST(Analyzer, AChainOfWakeUpsIsCountedHopByHop) {
  std::vector<Event> events = {
      event(0, 0, Kind::proc_begin, {1}),     event(0, 0, Kind::create, {1, 100, 1}),
      event(0, 0, Kind::create, {2, 200, 1}), event(1, 0, Kind::run, {2, 1}),
      event(2, 0, Kind::park, {5, 0}),        event(3, 0, Kind::run, {1, 1})};
  std::int64_t now = 4;
  for (int i = 0; i < 500; ++i) {  // 1 and 2 wake each other by runnext
    const std::uint64_t other = i % 2 == 0 ? 2 : 1;
    events.push_back(event(now++, 0, Kind::ready, {other, 0, 0}));
    events.push_back(event(now++, 0, Kind::park, {5, 0}));
    events.push_back(event(now++, 0, Kind::run, {other, 0}));
  }
  const Summary summary = analyse(events, 1);
  EXPECT_EQ(summary.longest_chain.hops, 501u);
  ASSERT_FALSE(summary.ping_pong.empty());
  EXPECT_GE(summary.ping_pong[0].turns, 490u);
  EXPECT_EQ(summary.ping_pong[0].first + summary.ping_pong[0].second, 3u);
}

TEST(Analyzer, AWakeUpByATimerBeginsAChain) {
  const Summary summary =
      analyse({event(0, 0, Kind::proc_begin, {1}), event(0, 0, Kind::create, {1, 100, 1}),
               event(1, 0, Kind::run, {1, 1}), event(2, 0, Kind::park, {3, 0}),
               event(9, 0, Kind::ready, {1, 1, number(Source::timer)}),
               event(10, 0, Kind::run, {1, 1}), event(11, 0, Kind::end)});
  EXPECT_EQ(summary.critical_path.hops, 1u);
  EXPECT_EQ(summary.critical_path.begin_ns, 9);
  EXPECT_EQ(summary.blockers.at(0).source, Source::timer);
}

TEST(Analyzer, AnUndeclaredBlockingCallIsCountedForItsSite) {
  const Summary summary =
      analyse({event(0, 0, Kind::proc_begin, {1}), event(0, 0, Kind::create, {1, 100, 1}),
               event(10, 0, Kind::run, {1, 1}),
               event(100, -1, Kind::taken, {0, 1, number(trace::Why::blocks_undeclared)}),
               event(120, 0, Kind::proc_begin, {2}), event(130, 0, Kind::proc_end),
               event(500, 0, Kind::back, {1}), event(600, 0, Kind::end)},
              1);
  const SiteSummary& of_it = site(summary, 100);
  EXPECT_EQ(of_it.blocked_undeclared, 1u);
  EXPECT_EQ(of_it.total[Part::blocking_call], 400);
  EXPECT_EQ(of_it.total[Part::running], 90 + 100);
  EXPECT_EQ(summary.most_without_p, 1u);
  EXPECT_EQ(summary.procs[0].handed_over_ns, 20);
}

TEST(Analyzer, APreemptedGoroutineIsStoppedUntilItRunsAgain) {
  const Summary summary =
      analyse({event(0, 0, Kind::proc_begin, {1}), event(0, 0, Kind::create, {1, 100, 1}),
               event(10, 0, Kind::run, {1, 1}),
               event(100, -1, Kind::taken, {0, 1, number(trace::Why::used_its_slice)}),
               event(150, -1, Kind::stop, {1, number(Place::stopped)}),
               event(450, 0, Kind::run, {1, number(Place::stopped)}), event(500, 0, Kind::end)},
              1);
  const SiteSummary& of_it = site(summary, 100);
  EXPECT_EQ(of_it.preempted, 1u);
  EXPECT_EQ(of_it.total[Part::without_p], 50);
  EXPECT_EQ(of_it.total[Part::stopped], 300);
  EXPECT_EQ(of_it.total[Part::running], 90 + 50);
}

TEST(Analyzer, AChildRunInPlaceEndsAndItsParentGoesOn) {
  const Summary summary =
      analyse({event(0, 0, Kind::proc_begin, {1}), event(0, 0, Kind::create, {1, 100, 1}),
               event(0, 0, Kind::run, {1, 1}), event(10, 0, Kind::create, {2, 200, 1}),
               event(20, 0, Kind::join_begin, {2}), event(70, 0, Kind::join_end, {2, 1}),
               event(100, 0, Kind::end)},
              1);
  EXPECT_EQ(summary.goroutines_ended, 2u);
  EXPECT_EQ(site(summary, 200).total[Part::running], 50);
  EXPECT_EQ(site(summary, 100).total[Part::running], 20 + 30);
  EXPECT_EQ(site(summary, 100).total[Part::blocked], 50);
}

TEST(Analyzer, ARegionHasTheAnatomyOfTheTimeInIt) {
  const Summary summary =
      analyse({event(0, 0, Kind::proc_begin, {1}), event(0, 0, Kind::create, {1, 100, 1}),
               event(0, 0, Kind::run, {1, 1}), event(10, 0, Kind::region_begin, {7}),
               event(30, 0, Kind::park, {5, 0}), event(80, 0, Kind::ready, {1, 1, 2}),
               event(90, 0, Kind::run, {1, 1}), event(100, 0, Kind::region_end, {7})},
              1);
  ASSERT_EQ(summary.regions.size(), 1u);
  EXPECT_EQ(summary.regions[0].times.quantile(0.5), 90);
  const Parts parts = summary.regions[0].times.at(0.5)->extra;
  EXPECT_EQ(parts[Part::running], 20 + 10);
  EXPECT_EQ(parts[Part::blocked], 50);
  EXPECT_EQ(parts[Part::own_queue], 10);
}

TEST(Analyzer, WhatTheTraceDoesNotTellIsUnknownAndStillAddsUp) {
  // It begins in the middle: 1 runs, 2 waits; and the `park` of 1 is lost.
  const Summary summary = analyse(
      {event(100, 0, Kind::proc_begin, {1}), event(100, 0, Kind::state, {1, 3, 0, 0, 100}),
       event(100, -1, Kind::state, {2, 4, 10, 0xa, 200}), event(200, -1, Kind::ready, {2, 1, 3}),
       event(300, 0, Kind::run, {2, 1}), event(400, 0, Kind::end)},
      1, 500);
  EXPECT_EQ(site(summary, 100).total[Part::running], 200);
  EXPECT_EQ(site(summary, 100).total[Part::unknown], 200);
  EXPECT_EQ(site(summary, 100).total.sum(), 400);
  EXPECT_EQ(site(summary, 200).total[Part::blocked], 100);
}

// A scheduler of `procs` Ps with a lock, a network and preemption, at random.
std::vector<Event> random_trace(unsigned seed, int steps, std::size_t procs) {
  std::mt19937 random(seed);
  std::vector<Event> events;
  std::vector<std::uint64_t> running(procs), waiting;
  std::deque<std::uint64_t> runnable;
  std::uint64_t next = 1;
  std::int64_t now = 0;
  for (std::size_t p = 0; p < procs; ++p)
    events.push_back(event(0, static_cast<std::int32_t>(p), Kind::proc_begin, {p + 1}));
  for (int i = 0; i < steps; ++i) {
    now += random() % 3000;
    const auto p = static_cast<std::int32_t>(random() % procs);
    switch (random() % 6) {
      case 0:
        runnable.push_back(next);
        events.push_back(event(now, p, Kind::create, {next++, 100 + random() % 3, 1}));
        break;
      case 1:
      case 2:
        if (running[p] == 0 && !runnable.empty()) {
          running[p] = runnable.front();
          runnable.pop_front();
          events.push_back(event(now, p, Kind::run, {running[p], random() % 3}));
        }
        break;
      case 3:
        if (running[p] != 0) {
          waiting.push_back(running[p]);
          running[p] = 0;
          events.push_back(event(now, p, Kind::park, {5, 0x10}));
        }
        break;
      case 4:
        if (!waiting.empty()) {
          runnable.push_back(waiting.back());
          waiting.pop_back();
          events.push_back(event(now, p, Kind::ready, {runnable.back(), random() % 3, 0}));
        }
        break;
      default:
        if (running[p] != 0) {
          running[p] = 0;
          events.push_back(event(now, p, Kind::end));
        }
        break;
    }
  }
  return events;
}

// How long the goroutines of each site lived, from create to end: by the events alone.
std::map<std::uint64_t, std::vector<std::int64_t>> lives_by_site(const std::vector<Event>& events) {
  std::map<std::uint64_t, std::vector<std::int64_t>> lives;
  std::map<std::uint64_t, Event> births;
  std::map<std::int32_t, std::uint64_t> running;
  for (const Event& one : events) {
    if (one.kind == Kind::create) births[one.args[0]] = one;
    if (one.kind == Kind::run) running[one.proc] = one.args[0];
    if (one.kind != Kind::end) continue;
    const Event& birth = births.at(running.at(one.proc));
    lives[birth.args[1]].push_back(one.time_ns - birth.time_ns);
  }
  return lives;
}

TEST(Analyzer, ThePartsOfALatencyAddUpToTheWholeAtEveryQuantile) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const std::vector<Event> events = random_trace(seed, 60'000, 4);
  const Summary summary = analyse(events, 4);
  ASSERT_EQ(summary.sites.size(), 3u);
  std::map<std::uint64_t, std::vector<std::int64_t>> measured = lives_by_site(events);
  for (const SiteSummary& one : summary.sites) {
    std::vector<std::int64_t>& lives = measured[one.site];
    std::ranges::sort(lives);
    ASSERT_EQ(one.lives.count(), lives.size());
    ASSERT_GT(lives.size(), 300u);
    for (double share : {0.5, 0.99, 0.999}) {
      const Anatomy::Bucket* bucket = one.lives.at(share);
      EXPECT_EQ(bucket->extra.sum(), bucket->sum);  // to the nanosecond, in each bucket
      const auto place = static_cast<std::size_t>(share * static_cast<double>(lives.size()));
      const auto whole = static_cast<double>(lives.at(place));
      const double parts =
          static_cast<double>(bucket->extra.sum()) / static_cast<double>(bucket->count);
      EXPECT_NEAR(parts, whole, 0.02 * whole) << share;
    }
  }
  std::int64_t lives = 0;
  for (const SiteSummary& one : summary.sites) lives += one.total.sum();
  EXPECT_GT(lives, 0);
}

TEST(Analyzer, KnowsThousandsOfPs) {
  constexpr std::int32_t kMany = 3000;
  const Summary summary = analyse(
      {event(0, kMany, Kind::proc_begin, {1}),
       event(0, 0, Kind::create, {1, 100, number(Place::ring)}),
       event(10, kMany, Kind::steal, {0, 1, 0}),
       event(20, kMany, Kind::run, {1, number(Place::stolen)}), event(1020, kMany, Kind::end)},
      2);
  ASSERT_EQ(summary.procs.size(), kMany + 1u);
  EXPECT_EQ(summary.procs[kMany].running_ns, 1000);
  EXPECT_EQ(summary.steals[kMany].at(0).hits, 1u);
}

TEST(Analyzer, UtilisationAddsUpInEveryTrace) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Summary summary = analyse(random_trace(seed, 20'000, 4), 4);
  for (const ProcSummary& p : summary.procs)
    EXPECT_EQ(p.running_ns + p.searching_ns + p.scheduler_ns + p.handed_over_ns + p.idle_ns,
              summary.duration_ns());
}

TEST(Analyzer, AnyEventsInAnyOrderAreSurvived) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<Event> events;
  for (int i = 0; i < 20'000; ++i) {
    Event any = event(static_cast<std::int64_t>(random() % 1'000'000),
                      static_cast<std::int32_t>(random() % 6) - 1,
                      static_cast<Kind>(random() % (trace::kKinds + 2)));
    for (std::uint64_t& arg : any.args) arg = random() % 20 == 0 ? random() : random() % 12;
    any.goroutine = random() % 12;
    events.push_back(any);
  }
  const Summary summary = analyse(events, 2);
  EXPECT_EQ(summary.events, events.size());
}

TEST(Histogram, AQuantileIsOffByLessThanTwoPercent) {
  Histogram<> histogram;
  for (std::int64_t i = 1; i <= 100'000; ++i) histogram.add(i * 37);
  for (double share : {0.01, 0.5, 0.9, 0.99, 0.999})
    EXPECT_NEAR(static_cast<double>(histogram.quantile(share)), share * 3.7e6,
                0.02 * share * 3.7e6);
  EXPECT_EQ(histogram.largest(), 3'700'000);
  for (int bucket = 0; bucket < 3000; ++bucket) EXPECT_EQ(bucket_of(lower_end_of(bucket)), bucket);
}

TEST(Report, DurationsHaveThreeDigits) {
  EXPECT_EQ(duration_text(7), "7 ns");
  EXPECT_EQ(duration_text(1234), "1.23 us");
  EXPECT_EQ(duration_text(999'999), "1.00 ms");
  EXPECT_EQ(duration_text(45'600'000), "45.6 ms");
  EXPECT_EQ(duration_text(7'800'000'000), "7.80 s");
}

}  // namespace
}  // namespace magpie::analysis
