// atomic_test.cc: counters that one thread writes and others read; the clocks that fill some of
// them.

#include "base/atomic.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/clock.h"

namespace magpie::base {
namespace {

TEST(Counter, CountsFromZero) {
  Counter counter;
  EXPECT_EQ(counter.read(), 0u);
  counter.increment();
  counter.add(41);
  EXPECT_EQ(counter.read(), 42u);
}

TEST(Counter, AReaderOnAnotherThreadSeesItOnlyGrowAndNeverTorn) {
  constexpr std::uint64_t kStep = 0x1'0000'0001;  // both halves change together
  constexpr std::uint64_t kSteps = 200'000;
  Counter counter;
  std::jthread writer([&] {
    for (std::uint64_t i = 0; i < kSteps; ++i) counter.add(kStep);
  });
  std::uint64_t last = 0;
  while (last != kSteps * kStep) {
    const std::uint64_t now = counter.read();
    ASSERT_GE(now, last);
    ASSERT_EQ(now % kStep, 0u);
    last = now;
  }
}

TEST(Clock, NeverGoesBackAndTheCoarseOneIsNeverAhead) {
  std::int64_t last = now_ns();
  for (int i = 0; i < 10'000; ++i) {
    const std::int64_t coarse = coarse_now_ns();
    const std::int64_t now = now_ns();
    ASSERT_GE(now, last);
    ASSERT_LE(coarse, now);
    last = now;
  }
}

}  // namespace
}  // namespace magpie::base
