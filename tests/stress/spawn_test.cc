// spawn_test.cc: very many goroutines are started, joined and forgotten.

#include <magpie/magpie.h>

#include <atomic>
#include <vector>

#include "base/random.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using support::scaled;

long tree(int depth, int width) {
  if (depth == 0) return 1;
  std::vector<JoinHandle<long>> children;
  for (int i = 0; i < width; ++i) {
    children.push_back(spawn([=] { return tree(depth - 1, width); }));
  }
  long leaves = 0;
  for (auto& child : children) leaves += child.join();
  return leaves;
}

RT_TEST(StressSpawn, AWideTreeCountsItsLeaves) {
  for (int round = 0; round < scaled(150); ++round) ASSERT_EQ(tree(4, 10), 10'000);
}

RT_TEST(StressSpawn, ADeepTreeCountsItsLeaves) {
  for (int round = 0; round < scaled(60); ++round) ASSERT_EQ(tree(14, 2), 16'384);
}

RT_TEST(StressSpawn, ATreeOfDetachedGoroutinesEnds) {
  struct Grow {
    static void run(WaitGroup& all, std::atomic<long>& leaves, int depth) {
      if (depth == 0) {
        leaves.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      for (int i = 0; i < 4; ++i) {
        all.go([&all, &leaves, depth] { run(all, leaves, depth - 1); });
      }
    }
  };
  for (int round = 0; round < scaled(100); ++round) {
    WaitGroup all;
    std::atomic<long> leaves{0};
    all.go([&] { Grow::run(all, leaves, 7); });
    all.wait();
    ASSERT_EQ(leaves, 16'384);
  }
}

// Handles are joined, dropped or detached at random, by goroutines that yield at random.
RT_TEST(StressSpawn, AStormOfSpawnsAndJoinsLosesNothing) {
  const std::uint64_t seed = support::printed_seed();
  const int rounds = scaled(60'000);
  constexpr int kGoroutines = 40;
  std::atomic<long> ran{0};
  WaitGroup all;
  for (int i = 0; i < kGoroutines; ++i) {
    all.go([&ran, rounds, random = base::Random(seed + static_cast<std::uint64_t>(i))]() mutable {
      std::vector<JoinHandle<int>> kept;
      for (int round = 0; round < rounds; ++round) {
        const bool yields = random.next() % 4 == 0;
        auto handle = spawn([&ran, yields, round] {
          if (yields) yield();
          ran.fetch_add(1, std::memory_order_release);  // the last touch of those that are detached
          return round;
        });
        switch (random.next() % 5) {
          case 0:
            ASSERT_EQ(handle.join(), round);
            break;
          case 1:
            handle.detach();
            break;
          case 2:
            break;  // the destructor joins
          default:
            kept.push_back(std::move(handle));
        }
        if (random.next() % 64 == 0) kept.clear();
        if (random.next() % 64 == 0) yield();
      }
    });
  }
  all.wait();
  EXPECT_TRUE(support::eventually([&] { return ran == long{rounds} * kGoroutines; }))
      << ran << " of " << long{rounds} * kGoroutines;
}

}  // namespace
}  // namespace magpie
