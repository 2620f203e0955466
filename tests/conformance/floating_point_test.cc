// floating_point_test.cc: the rounding mode is the processor's; here it belongs to the goroutine
// that set it.
#include <array>
#include <atomic>
#include <cfenv>

#include "support/overtake.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using support::be_overtaken;
using support::kMany;

RT_TEST(FloatingPoint, ARoundingModeStaysWithItsGoroutineAcrossYields) {
  constexpr std::array kModes = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  std::atomic<int> wrong{0};
  WaitGroup all;
  for (int i = 0; i < kMany; ++i) {
    all.go([&, mode = kModes[static_cast<std::size_t>(i) % kModes.size()]] {
      if (std::fegetround() != FE_TONEAREST) ++wrong;  // as every goroutine starts
      std::fesetround(mode);
      for (int turn = 0; turn < 10; ++turn) {
        yield();
        if (std::fegetround() != mode) ++wrong;
      }
    });
  }
  all.wait();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

RT_TEST(FloatingPoint, ARoundingModeThatAGoroutineLeavesBehindReachesNobody) {
  std::atomic<int> wrong{0};
  for (int round = 0; round < 50; ++round) {
    WaitGroup all;
    all.go([] { std::fesetround(FE_UPWARD); });  // ends without ever blocking
    all.go([&] { wrong += std::fegetround() != FE_TONEAREST; });
    all.wait();
    // Run in place by the joiner.
    spawn([] { std::fesetround(FE_DOWNWARD); }).join();
    wrong += std::fegetround() != FE_TONEAREST;
  }
  EXPECT_EQ(wrong, 0);
}

RT_TEST(FloatingPoint, AJoinersRoundingModeSurvivesAGoroutineThatItRunsInPlace) {
  std::fesetround(FE_UPWARD);
  int inside = -1;
  spawn([&] {
    inside = std::fegetround();
    std::fesetround(FE_TOWARDZERO);
    be_overtaken();
  }).join();
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(inside, FE_TONEAREST);
}

TEST(FloatingPoint, RunKeepsItsCallersRoundingMode) {
  std::fesetround(FE_DOWNWARD);
  int inside = -1;
  run(Options{.procs = 2}, [&] {
    inside = std::fegetround();
    std::fesetround(FE_UPWARD);
    be_overtaken();
  });
  const int after = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(inside, FE_TONEAREST);
  EXPECT_EQ(after, FE_DOWNWARD);
}

}  // namespace
}  // namespace magpie
