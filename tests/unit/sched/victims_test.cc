// victims_test.cc: at which Ps a thief looks, and which idle P a waker starts.

#include "sched/victims.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "base/random.h"

namespace magpie::sched {
namespace {

using Numbers = std::vector<std::uint32_t>;

std::vector<cpus::Home> homes(const char* machine, std::uint32_t procs) {
  return cpus::make_homes(*cpus::parse_topology(machine), procs);
}

struct Look {
  std::uint32_t victim;
  Distance distance;
};

std::vector<Look> looks(const std::vector<cpus::Home>& all, std::uint32_t thief, int round,
                        const IdleMask& idle, std::uint32_t random = 12345) {
  policy::Detours detours;
  Victims victims(all[thief], thief, static_cast<std::uint32_t>(all.size()), idle, detours);
  victims.begin_round(round, random);
  std::vector<Look> seen;
  for (;;) {
    const std::uint32_t victim = victims.next();
    if (victim == kNoP) return seen;
    seen.push_back({victim, victims.distance()});
  }
}

Numbers sorted_victims(const std::vector<Look>& seen) {
  Numbers numbers;
  for (const Look& look : seen) numbers.push_back(look.victim);
  std::ranges::sort(numbers);
  return numbers;
}

class VictimsTest : public ::testing::Test {
 protected:
  IdleMask nobody_idle;
};

TEST_F(VictimsTest, TheLastRoundLooksAtEveryOtherPOnceNearOnesFirst) {
  const auto all = homes("node:2 l3:2 core:2 pu:2", 16);
  for (std::uint32_t thief = 0; thief < 16; ++thief) {
    const auto seen = looks(all, thief, policy::kStealRounds - 1, nobody_idle);
    Numbers others;
    for (std::uint32_t p = 0; p < 16; ++p)
      if (p != thief) others.push_back(p);
    EXPECT_EQ(sorted_victims(seen), others);
    EXPECT_TRUE(std::ranges::is_sorted(seen, {}, &Look::distance));
    for (const Look& look : seen) EXPECT_EQ(look.distance, distance_of(all[thief], look.victim));
    EXPECT_EQ(seen.front().distance, Distance::sibling);
    EXPECT_EQ(std::ranges::count(seen, Distance::far, &Look::distance), 8);
  }
}

TEST_F(VictimsTest, EarlierRoundsStayNear) {
  const auto all = homes("node:2 l3:2 core:4", 16);
  EXPECT_EQ(sorted_victims(looks(all, 5, 0, nobody_idle)), (Numbers{4, 6, 7}));
  for (const int round : {1, 2})
    EXPECT_EQ(sorted_victims(looks(all, 5, round, nobody_idle)), (Numbers{0, 1, 2, 3, 4, 6, 7}));
}

TEST_F(VictimsTest, OnAFlatMachineEveryRoundLooksAtAll) {
  const auto all = homes("core:8", 8);
  for (int round = 0; round < policy::kStealRounds; ++round)
    EXPECT_EQ(sorted_victims(looks(all, 3, round, nobody_idle)), (Numbers{0, 1, 2, 4, 5, 6, 7}));
}

TEST_F(VictimsTest, IdlePsArePassedBy) {
  const auto all = homes("node:2 core:4", 8);
  IdleMask idle;
  for (const std::uint32_t p : {0u, 2u, 4u, 5u, 7u}) idle.set(p);
  EXPECT_EQ(sorted_victims(looks(all, 1, policy::kStealRounds - 1, idle)), (Numbers{3, 6}));
  idle.clear(2);
  EXPECT_EQ(sorted_victims(looks(all, 1, policy::kStealRounds - 1, idle)), (Numbers{2, 3, 6}));
}

TEST_F(VictimsTest, TheWalkOfARingBeginsAnywhere) {
  const auto all = homes("core:8", 8);
  base::Random random(7);
  std::set<std::uint32_t> first;
  for (int i = 0; i < 200; ++i)
    first.insert(looks(all, 0, 0, nobody_idle, random.next()).front().victim);
  EXPECT_EQ(first.size(), 7u);
}

TEST_F(VictimsTest, ARoundLooksAtNoMorePsOnALargerMachine) {
  for (const std::uint32_t procs : {64u, 256u, 4096u}) {
    const auto all = homes("node:4 l3:8 core:128", procs);
    for (int round = 0; round < policy::kStealRounds; ++round)
      EXPECT_LE(looks(all, procs / 2, round, nobody_idle).size(), 3u * policy::kLooksPerDistance);
  }
}

TEST_F(VictimsTest, FewBusyPsAmongManyIdleOnesAreAllFound) {
  const auto all = homes("node:2 core:128", 256);
  IdleMask idle;
  for (std::uint32_t p = 0; p < 256; ++p) idle.set(p);
  for (const std::uint32_t p : {9u, 100u, 255u}) idle.clear(p);
  EXPECT_EQ(sorted_victims(looks(all, 9, policy::kStealRounds - 1, idle)), (Numbers{100, 255}));
}

// Load counts for more than distance.
TEST_F(VictimsTest, SomeSearchesBeginFarAway) {
  const auto all = homes("node:2 core:4", 8);
  policy::Detours detours;
  Victims victims(all[1], 1, 8, nobody_idle, detours);
  for (std::uint32_t i = 1; i < policy::kDetourEvery; ++i) {
    victims.begin_round(0, 5);
    EXPECT_LT(victims.next(), 4u);
    EXPECT_TRUE(victims.is_worth_it(1));
  }
  victims.begin_round(0, 5);
  EXPECT_LT(victims.next(), 4u);  // to compare with
  EXPECT_FALSE(victims.is_worth_it(3));
  for (std::uint32_t i = 0; i < policy::kDetourLooks; ++i) {
    EXPECT_GE(victims.next(), 4u);
    EXPECT_FALSE(victims.is_worth_it(policy::kDetourLeast + 5));
    EXPECT_TRUE(victims.is_worth_it(policy::kDetourLeast + 6));
  }
  EXPECT_LT(victims.next(), 4u);  // and goes on near by
  EXPECT_TRUE(victims.is_worth_it(1));
}

TEST_F(VictimsTest, ADetourThatPaidIsMadeAgainUntilItDoesNotPay) {
  const auto all = homes("node:2 core:4", 8);
  policy::Detours detours;
  Victims victims(all[1], 1, 8, nobody_idle, detours);
  detours.has_paid = true;
  for (int i = 0; i < 3; ++i) {
    victims.begin_round(0, 5);
    EXPECT_FALSE(victims.is_worth_it(victims.next() < 4 ? 0 : 100));
    EXPECT_GE(victims.next(), 4u);
    EXPECT_TRUE(victims.is_worth_it(100));
    victims.note_robbed();
    EXPECT_TRUE(detours.has_paid);
  }
  victims.begin_round(0, 5);
  while (victims.next() != kNoP) {
  }
  EXPECT_FALSE(detours.has_paid);
}

TEST_F(VictimsTest, PsBeyondTheBitsCountAsBusy) {
  IdleMask idle;
  idle.set(IdleMask::kPs);
  EXPECT_EQ(idle.next_busy(IdleMask::kPs, IdleMask::kPs + 2), IdleMask::kPs);
  EXPECT_EQ(idle.next_idle(IdleMask::kPs - 1, IdleMask::kPs + 2), IdleMask::kPs + 2);
  idle.set(IdleMask::kPs - 1);
  EXPECT_EQ(idle.next_idle(0, IdleMask::kPs + 2), IdleMask::kPs - 1);
  EXPECT_EQ(idle.next_busy(IdleMask::kPs - 1, IdleMask::kPs + 2), IdleMask::kPs);
}

TEST(IdleNear, IsTheNearestAndTheOtherThreadOfACoreComesLast) {
  const auto all = homes("node:2 l3:2 core:2 pu:2", 16);  // caches of 4, nodes of 8
  IdleMask idle;
  EXPECT_EQ(idle_near(all[0], 0, idle), kNoP);
  for (std::uint32_t p = 8; p < 16; ++p) idle.set(p);
  EXPECT_EQ(idle_near(all[0], 0, idle), kNoP);  // none is near
  idle.set(all[0].sibling);
  EXPECT_EQ(idle_near(all[0], 0, idle), all[0].sibling);
  idle.set(6);
  EXPECT_EQ(idle_near(all[0], 0, idle), 6u);
  idle.set(1);
  EXPECT_EQ(idle_near(all[0], 0, idle), 1u);
  idle.set(0);
  EXPECT_EQ(idle_near(all[0], 0, idle), 0u);  // a thread that comes back gets its own
}

}  // namespace
}  // namespace magpie::sched
