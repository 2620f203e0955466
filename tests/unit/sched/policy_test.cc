// policy_test.cc: decisions that need no queue and no thread.

#include "sched/policy.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace magpie::sched::policy {
namespace {

using Verdict = ChainClock::Verdict;
using Because = ChainClock::Because;

constexpr std::int64_t kMillisecond = 1'000'000;

TEST(ChainClockTest, AChainGivesWayAMillisecondAfterItsFirstLook) {
  ChainClock clock;
  EXPECT_EQ(clock.look(1, 5 * kMillisecond, Because::turns_passed), Verdict::goes_on);
  EXPECT_EQ(clock.look(1, 6 * kMillisecond - 1, Because::turns_passed), Verdict::goes_on);
  EXPECT_EQ(clock.look(1, 6 * kMillisecond, Because::turns_passed), Verdict::gives_way);
}

TEST(ChainClockTest, AChainWhoseBeginningIsUnknownGivesWayWhenAsked) {
  ChainClock clock;
  EXPECT_EQ(clock.look(1, 5 * kMillisecond, Because::sysmon_asks), Verdict::gives_way);
}

// The shares of two chains by turns. The first takes steps of half a millisecond, so it looks at
// the clock only when sysmon asks, `late` after its millisecond. The other looks at once.
struct Shares {
  std::int64_t heavy = 0, light = 0;
};
Shares play(std::int64_t late) {
  ChainClock clock;
  Shares shares;
  std::int64_t now = kMillisecond;
  std::uint64_t tick = 0;
  for (int round = 0; round < 100; ++round) {
    std::int64_t since = now;
    ++tick;
    now += kMillisecond + late;
    while (clock.look(tick, now, Because::sysmon_asks) == Verdict::goes_on) now += kMillisecond / 2;
    shares.heavy += now - since;
    since = now;
    ++tick;
    while (clock.look(tick, now, Because::turns_passed) == Verdict::goes_on)
      now += kMillisecond / 100;
    shares.light += now - since;
  }
  return shares;
}

TEST(ChainClockTest, AChainOfShortStepsGetsAsMuchAsOneThatSysmonEndsLate) {
  for (std::int64_t late : {std::int64_t{0}, kMillisecond, 3 * kMillisecond}) {
    const Shares shares = play(late);
    EXPECT_LT(shares.heavy, shares.light + shares.light / 10) << late;
    EXPECT_LT(shares.light, shares.heavy + shares.heavy / 10) << late;
  }
}

TEST(ChainClockTest, WhatAChainTookTooLongLengthensTheNextOneByThreeMillisecondsAtMost) {
  const Shares shares = play(50 * kMillisecond);
  EXPECT_LE(shares.light, 100 * (4 * kMillisecond + kMillisecond / 100));
}

TEST(ChainClockTest, OnlyTheChainThatFollowsAtOnceHasMoreTime) {
  ChainClock clock;
  ASSERT_EQ(clock.look(1, 1 * kMillisecond, Because::sysmon_asks), Verdict::gives_way);
  ASSERT_EQ(clock.look(2, 9 * kMillisecond, Because::sysmon_asks), Verdict::gives_way);
  EXPECT_EQ(clock.look(7, 20 * kMillisecond, Because::turns_passed), Verdict::goes_on);
  EXPECT_EQ(clock.look(7, 21 * kMillisecond, Because::turns_passed), Verdict::gives_way);
}

}  // namespace
}  // namespace magpie::sched::policy
