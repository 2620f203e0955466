// yield_test.cc: goroutines move between threads all the time, and what is on their stacks stays as
// it was.

#include <magpie/magpie.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <thread>

#include "base/random.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using support::scaled;

std::uint64_t sum_of(const std::array<std::uint64_t, 64>& words) {
  std::uint64_t sum = 0;
  for (std::uint64_t word : words) sum = sum * 31 + word;
  return sum;
}

// Fills an array on the stack, yields, and checks it, at several depths.
bool keeps_its_stack(base::Random& random, int depth) {
  std::array<std::uint64_t, 64> words;
  for (auto& word : words) word = random.next();
  const std::uint64_t sum = sum_of(words);
  yield();
  const bool below = depth == 0 || keeps_its_stack(random, depth - 1);
  return below && sum_of(words) == sum;
}

RT_TEST(StressYield, StacksKeepTheirContentsAcrossThreads) {
  const std::uint64_t seed = support::printed_seed();
  WaitGroup all;
  std::atomic<int> wrong{0};
  for (std::uint64_t i = 0; i < 200; ++i) {
    all.go([&wrong, random = base::Random(seed + i)]() mutable {
      for (int round = 0; round < scaled(800); ++round) {
        if (!keeps_its_stack(random, static_cast<int>(random.next() % 8))) wrong.fetch_add(1);
      }
    });
  }
  all.wait();
  EXPECT_EQ(wrong, 0);
}

RT_TEST(StressYield, ExceptionsInFlightStayWithTheirGoroutine) {
  WaitGroup all;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 100; ++i) {
    all.go([&wrong, i] {
      for (int round = 0; round < scaled(400); ++round) {
        try {
          throw i;
        } catch (int caught) {
          yield();
          try {
            throw;
          } catch (int again) {
            if (again != i || caught != i) wrong.fetch_add(1);
          }
        }
      }
    });
  }
  all.wait();
  EXPECT_EQ(wrong, 0);
}

RT_TEST(StressYield, GoroutinesKeepTheirIdentityAndLocalsAcrossThreads) {
  Local<std::uint64_t> mine;
  WaitGroup all;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 200; ++i) {
    all.go([&] {
      const std::uint64_t id = goroutine_id();
      mine.set(id);
      for (int round = 0; round < scaled(30'000); ++round) {
        yield();
        if (goroutine_id() != id || mine.get() != id) wrong.fetch_add(1);
      }
    });
  }
  all.wait();
  EXPECT_EQ(wrong, 0);
}

// A goroutine is on two threads at once if a thief takes one that is not yet off its stack.
RT_TEST(StressYield, NoGoroutineRunsOnTwoThreadsAtOnce) {
  WaitGroup all;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 16; ++i) {
    all.go([&wrong] {
      std::atomic<int> inside{0};
      for (int round = 0; round < scaled(200'000); ++round) {
        if (inside.fetch_add(1) != 0) wrong.fetch_add(1);
        inside.fetch_sub(1);
        yield();
      }
    });
  }
  all.wait();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace magpie
