// random_test.cc: the generator that chooses victims.

#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace magpie::base {
namespace {

TEST(Random, TheSameSeedGivesTheSameNumbers) {
  Random one(42), other(42);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(one.next(), other.next());
}

TEST(Random, NeighbouringSeedsGiveDifferentNumbersFromTheFirstOn) {
  std::set<std::uint32_t> firsts;
  for (std::uint64_t seed = 0; seed < 256; ++seed) firsts.insert(Random(seed).next());
  EXPECT_GE(firsts.size(), 250u);
}

TEST(Random, SeedZeroWorksLikeAnyOther) {
  Random zero(0);
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(zero.next());
  EXPECT_GE(seen.size(), 990u);
}

TEST(Random, EachOfSeveralVictimsIsChosenAboutEquallyOften) {
  constexpr int kDraws = 160'000;
  for (const std::uint32_t victims : {2u, 3u, 8u, 16u}) {
    Random random(7);
    std::array<int, 16> hits{};
    for (int i = 0; i < kDraws; ++i) ++hits[random.next() % victims];
    const double expected = kDraws / static_cast<double>(victims);
    for (std::uint32_t v = 0; v < victims; ++v) EXPECT_NEAR(hits[v], expected, expected * 0.05);
  }
}

}  // namespace
}  // namespace magpie::base
