// throttling_test.cc: how often a quota stopped the process, counted from cpu.stat of fake trees.

#include <gtest/gtest.h>

#include <string>

#include "cpus/quota.h"
#include "fake_tree.h"

namespace magpie::cpus {

// For messages of failed tests.
void PrintTo(const Throttling& t, std::ostream* out) {
  *out << t.throttled_periods << " of " << t.periods << " periods, " << t.throttled_ns << " ns";
}

namespace {

std::string v2_stat(int periods, int throttled, int us) {
  return "usage_usec 12\nuser_usec 10\nsystem_usec 2\nnr_periods " + std::to_string(periods) +
         "\nnr_throttled " + std::to_string(throttled) + "\nthrottled_usec " + std::to_string(us) +
         "\nnr_bursts 0\nburst_usec 0\n";
}

std::string v1_stat(int periods, int throttled, long ns) {
  return "nr_periods " + std::to_string(periods) + "\nnr_throttled " + std::to_string(throttled) +
         "\nthrottled_time " + std::to_string(ns) + "\n";
}

// A process in the v2 cgroup /app/web, with a quota of 2 CPUs on each of the two.
class Throttled : public testing::Test {
 protected:
  Throttled() {
    tree_.set_cgroup("0::/app/web\n");
    tree_.set_mountinfo(v2_mount("/", "/cg"));
    tree_.write("/cg/app/web/cpu.max", "200000 100000\n");
    tree_.write("/cg/app/cpu.max", "200000 100000\n");
    set_web(10, 1, 5);
    set_app(10, 1, 5);
  }
  void set_web(int periods, int throttled, int us) {
    tree_.write("/cg/app/web/cpu.stat", v2_stat(periods, throttled, us));
  }
  void set_app(int periods, int throttled, int us) {
    tree_.write("/cg/app/cpu.stat", v2_stat(periods, throttled, us));
  }
  static Throttling next(QuotaReader& reader) {
    static_cast<void>(reader.read());
    return reader.throttling();
  }

  FakeTree tree_;
};

TEST_F(Throttled, WhatHappenedBeforeTheFirstLookDoesNotCount) {
  EXPECT_EQ(QuotaReader(tree_.root()).throttling(), Throttling{});
}

TEST_F(Throttled, GrowthFromLookToLookIsAddedUp) {
  QuotaReader reader(tree_.root());
  set_web(20, 3, 1'005);
  EXPECT_EQ(next(reader), (Throttling{10, 2, 1'000'000}));
  EXPECT_EQ(next(reader), (Throttling{10, 2, 1'000'000}));
  set_web(25, 4, 1'006);
  EXPECT_EQ(next(reader), (Throttling{15, 3, 1'001'000}));
}

TEST_F(Throttled, OfCgroupsAboveEachOtherTheOneThatStoppedUsLongestCounts) {
  QuotaReader reader(tree_.root());
  set_web(20, 2, 1'005);
  set_app(30, 9, 9'005);
  EXPECT_EQ(next(reader), (Throttling{20, 8, 9'000'000}));
  set_web(21, 3, 2'005);
  set_app(60, 9, 9'005);
  EXPECT_EQ(next(reader), (Throttling{21, 9, 10'000'000}));
}

TEST_F(Throttled, V1CountsInNanoseconds) {
  tree_.set_cgroup("2:cpu:/app\n");
  tree_.set_mountinfo(v1_mount("/", "/v1", "cpu"));
  tree_.write_v1("/v1/app", "100000", "100000");
  tree_.write("/v1/app/cpu.stat", v1_stat(1, 1, 50));
  QuotaReader reader(tree_.root());
  tree_.write("/v1/app/cpu.stat", v1_stat(4, 2, 777));
  EXPECT_EQ(next(reader), (Throttling{3, 1, 727}));
}

TEST_F(Throttled, ACgroupWithoutAQuotaIsNotAsked) {
  tree_.write("/cg/app/cpu.max", "max 100000\n");
  QuotaReader reader(tree_.root());
  set_app(30, 9, 9'005);
  EXPECT_EQ(next(reader), Throttling{});
}

TEST_F(Throttled, AQuotaThatIsLiftedIsCountedALastTimeAndOneThatIsSetBeginsAnew) {
  QuotaReader reader(tree_.root());
  set_web(20, 2, 15);
  tree_.write("/cg/app/web/cpu.max", "max 100000\n");
  EXPECT_EQ(next(reader), (Throttling{10, 1, 10'000}));
  set_web(40, 20, 900);
  EXPECT_EQ(next(reader), (Throttling{10, 1, 10'000}));
  tree_.write("/cg/app/web/cpu.max", "100000 100000\n");
  EXPECT_EQ(next(reader), (Throttling{10, 1, 10'000}));
  set_web(41, 21, 901);
  EXPECT_EQ(next(reader), (Throttling{11, 2, 11'000}));
}

TEST_F(Throttled, CountsThatShrinkBeginAnew) {
  QuotaReader reader(tree_.root());
  set_web(2, 1, 1);
  EXPECT_EQ(next(reader), Throttling{});
  set_web(3, 2, 3);
  EXPECT_EQ(next(reader), (Throttling{1, 1, 2'000}));
}

TEST_F(Throttled, AStatFileThatIsNotThereForAWhileIsSeenLater) {
  QuotaReader reader(tree_.root());
  tree_.remove("/cg/app/web/cpu.stat");
  EXPECT_EQ(next(reader), Throttling{});
  set_web(12, 2, 9);
  EXPECT_EQ(next(reader), (Throttling{2, 1, 4'000}));
}

TEST_F(Throttled, ACgroupThatVanishesLeavesWhatItCounted) {
  QuotaReader reader(tree_.root());
  set_web(12, 2, 9);
  EXPECT_EQ(next(reader), (Throttling{2, 1, 4'000}));
  tree_.remove("/cg/app/web");
  set_app(13, 2, 10);
  EXPECT_EQ(next(reader), (Throttling{5, 2, 9'000}));
}

TEST_F(Throttled, AProcessThatIsMovedCountsOnInItsNewCgroup) {
  QuotaReader reader(tree_.root());
  tree_.set_cgroup("0::/db\n");
  tree_.write("/cg/db/cpu.max", "100000 100000\n");
  tree_.write("/cg/db/cpu.stat", v2_stat(1'000, 500, 70'000));
  EXPECT_EQ(next(reader), Throttling{});
  tree_.write("/cg/db/cpu.stat", v2_stat(1'001, 501, 70'001));
  EXPECT_EQ(next(reader), (Throttling{1, 1, 1'000}));
}

TEST(CpuStat, TextsThatCountNoPeriodsAreNoCounts) {
  for (const char* text : {"", "\n", "usage_usec 5\n", "nr_throttled", "nr_throttled -1\n",
                           "nr_throttled x\n", "nr_throttled 99999999999999999999999\n",
                           "nr_periods 1\nnr_throttled 1\nthrottled_time", "\x01\xff garbage"}) {
    EXPECT_EQ(parse_cpu_stat(text), std::nullopt) << text;
  }
}

TEST(CpuStat, TheOrderOfTheLinesAndUnknownLinesDoNotMatter) {
  EXPECT_EQ(parse_cpu_stat("throttled_usec 3\nnew_word 8\nnr_throttled 2\nnr_periods 7"),
            (Throttling{7, 2, 3'000}));
}

TEST(CpuStat, ATimeThatDoesNotFitIsCutOff) {
  EXPECT_EQ(parse_cpu_stat("nr_throttled 1\nthrottled_usec 18446744073709551615\n")->throttled_ns,
            18'446'744'073'709'551'000u);
}

}  // namespace
}  // namespace magpie::cpus
