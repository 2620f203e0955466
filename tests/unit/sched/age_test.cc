// age_test.cc: how long goroutines have waited, as looks at them tell.

#include "sched/dump/age.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace magpie::sched {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kBegin = 1'000 * kMs;

void park(G& g) { g.wait_reason.store(WaitReason::chan_receive, base::relaxed); }

TEST(Ages, SayNothingOfAWaitThatNoLookHasSeen) {
  Ages ages;
  G g;
  park(g);
  ages.begin_look(kBegin);
  EXPECT_EQ(ages.look_at(g), -1);
  ages.begin_look(kBegin + 5 * kMs);
  EXPECT_EQ(ages.look_at(g), 5 * kMs);
  park(g);
  ages.begin_look(kBegin + 10 * kMs);
  EXPECT_EQ(ages.look_at(g), -1);
}

// Goroutines park at each look, so that every number is in use all the time.
TEST(Ages, TellAGoodPartOfTheTruthHoweverOftenSomebodyLooks) {
  Ages ages;
  std::vector<G> goroutines(2'000);
  for (int look = 0; look < static_cast<int>(goroutines.size()); ++look) {
    const std::int64_t now = kBegin + look * 10 * kMs;
    park(goroutines[look]);
    ages.begin_look(now);
    for (int i = 0; i <= look; ++i) {
      const std::int64_t truth = (look - i) * 10 * kMs, told = ages.look_at(goroutines[i]);
      if (i == look) {
        ASSERT_EQ(told, -1);
      } else {
        ASSERT_LE(told, truth);
        ASSERT_GE(told, truth / 10) << "goroutine " << i << ", look " << look;
      }
    }
  }
}

TEST(Ages, OfOneWaitAreExactWhenNoOtherGoroutineWaits) {
  Ages ages;
  G g;
  park(g);
  for (int look = 0; look < 1'000; ++look) {
    ages.begin_look(kBegin + look * 10 * kMs);
    ASSERT_EQ(ages.look_at(g), look == 0 ? -1 : look * 10 * kMs);
  }
}

}  // namespace
}  // namespace magpie::sched
