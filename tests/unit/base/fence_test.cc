// fence_test.cc: two threads raise a flag each and then read the other's; at least one of them sees
// it.

#include "base/fence.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

namespace magpie::base {
namespace {

// How often, in many rounds, both sides missed the other's flag.
int rounds_where_both_missed() {
  constexpr int kRounds = 5'000;
  constexpr auto relaxed = std::memory_order_relaxed;
  alignas(64) std::atomic<int> hot_flag{0};
  alignas(64) std::atomic<int> rare_flag{0};
  alignas(64) std::atomic<int> hot_round{0};  // the hot side may begin this round
  alignas(64) std::atomic<int> hot_done{0};   // the hot side has ended this round
  alignas(64) std::atomic<int> hot_saw{0};

  std::jthread hot([&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (hot_round.load() < round) std::this_thread::yield();
      hot_flag.store(round, relaxed);
      light_fence();
      hot_saw.store(rare_flag.load(relaxed), relaxed);
      hot_done.store(round);
    }
  });

  int both_missed = 0;
  for (int round = 1; round <= kRounds; ++round) {
    hot_round.store(round);
    rare_flag.store(round, relaxed);
    heavy_fence();
    const bool rare_missed = hot_flag.load(relaxed) != round;
    while (hot_done.load() < round) std::this_thread::yield();
    if (rare_missed && hot_saw.load(relaxed) != round) ++both_missed;
  }
  return both_missed;
}

// As they were when the first constructor of this program ran, and after main had begun.
struct AtConstruction {
  bool light_fence_was_free = detail::fences_granted.light_is_free();
} at_construction;

TEST(Fence, TheirKindIsFixedBeforeTheFirstConstructorRuns) {
  const bool before = detail::fences_granted.light_is_free();
  EXPECT_EQ(at_construction.light_fence_was_free, before);
  prepare_fences();
  EXPECT_EQ(detail::fences_granted.light_is_free(), before);
}

TEST(Fence, InTheChildOfAForkHeavyFencesStillWork) {
  EXPECT_EXIT(
      {
        heavy_fence();
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Fence, WithALightAndAHeavyFenceTwoSidesNeverMissEachOther) {
  EXPECT_EQ(rounds_where_both_missed(), 0);
}

// Forbidding cannot be undone, so it happens in a process of its own.
TEST(Fence, WhereMembarrierIsForbiddenLightFencesAreRealAndTwoSidesNeverMissEachOther) {
  EXPECT_EXIT(
      {
        forbid_membarrier();
        prepare_fences();  // does not allow it again
        const bool good =
            !detail::fences_granted.light_is_free() && rounds_where_both_missed() == 0;
        std::_Exit(good ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace magpie::base
