// global_queue_test.cc: the queue that all Ps share, in a shard for each node.

#include "sched/core/global_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "sched/policy.h"
#include "support/test_length.h"
#include "unit/sched/numbered.h"

namespace magpie::sched {
namespace {

constexpr std::uint32_t kNodes = 4;
constexpr std::uint32_t kProcsOfNode = 2;

GlobalQueue::Taker taker(std::uint32_t node) { return {node, kProcsOfNode, kNodes * kProcsOfNode}; }

class GlobalQueueTest : public ::testing::Test {
 protected:
  GlobalQueueTest() { EXPECT_TRUE(queue.add_shards(kNodes)); }

  void make_room(std::size_t records) {
    const std::size_t bytes = ChunkStore::bytes_of_room(records);
    rooms_.push_back(std::make_unique<std::byte[]>(bytes));
    queue.chunks().add_room(rooms_.back().get(), bytes);
  }

  std::vector<std::size_t> pop_share(std::uint32_t node) {
    G* out[128];
    const std::size_t count = queue.pop_share(taker(node), out);
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < count; ++i) numbers.push_back(number_of(out[i]));
    return numbers;
  }

  // What is pushed from now on became ready so much later that another shard may go first.
  static void wait_for_the_lead() {
    const std::int64_t until = base::coarse_now_ns() + policy::kShardLeadNs;
    while (base::coarse_now_ns() <= until) std::this_thread::yield();
  }

  GlobalQueue queue;

 private:
  std::vector<std::unique_ptr<std::byte[]>> rooms_;
};

TEST_F(GlobalQueueTest, WhatAThreadWithoutAPPutsThereGoesToTheNodeOfItsRecord) {
  make_room(100);
  const auto usual = std::make_unique<G>();
  const auto urgent = std::make_unique<G>();
  usual->node = 2;
  urgent->node = 3;
  queue.push(usual.get());
  queue.push_urgent(urgent.get());
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.urgent(), 1u);
  G* out[4];
  EXPECT_EQ(queue.pop_usual(0, out), 0u);
  ASSERT_EQ(queue.pop_usual(2, out), 1u);
  EXPECT_EQ(out[0], usual.get());
  EXPECT_EQ(queue.pop(3), urgent.get());
  EXPECT_TRUE(queue.empty());
}

TEST_F(GlobalQueueTest, APTakesItsPartOfTheShardOfItsOwnNode) {
  make_room(100);
  queue.push(0, numbered_range(0, 10));
  queue.push(1, numbered_range(10, 20));
  EXPECT_EQ(pop_share(1), range(10, 16));  // two Ps share it: half, and one
  EXPECT_EQ(pop_share(0), range(0, 6));
}

TEST_F(GlobalQueueTest, APWithAnEmptyShardTakesItsPartOfAnother) {
  make_room(100);
  queue.push(0, numbered_range(0, 16));
  EXPECT_EQ(pop_share(1), range(0, 3));  // all eight Ps share it
  EXPECT_EQ(queue.pop(2), numbered(3));
}

TEST_F(GlobalQueueTest, ThatTheUrgentLineOfAShardIsEmptyDoesNotHideTheOthers) {
  make_room(100);
  const auto urgent = std::make_unique<G>();
  urgent->node = 3;
  queue.push_urgent(urgent.get());
  queue.push(0, numbered_range(0, 2));
  G* out[8];
  ASSERT_EQ(queue.pop_few(taker(0), out), 2u);
  EXPECT_EQ(out[0], urgent.get());
  EXPECT_EQ(out[1], numbered(0));
}

TEST_F(GlobalQueueTest, WhatHasWaitedMuchLongerInAnotherShardGoesFirst) {
  make_room(100);
  queue.push(3, numbered_range(0, 1));
  wait_for_the_lead();
  queue.push(0, numbered_range(10, 12));
  EXPECT_EQ(pop_share(0), range(0, 1));
  EXPECT_EQ(pop_share(0), range(10, 12));
}

TEST_F(GlobalQueueTest, WhatGoesBackToTheFrontIsAsOldAsWhatIsThere) {
  make_room(100);
  queue.push(1, numbered_range(1, 2));
  wait_for_the_lead();
  queue.push_front(1, numbered_range(0, 1));
  queue.push(0, numbered_range(10, 11));
  EXPECT_EQ(queue.pop(0), numbered(0));
}

// Every look of a P whose own shard is never empty. Only what became ready within the lead goes
// before the goroutines of a node that has no P.
TEST_F(GlobalQueueTest, AShardWithoutPsDoesNotStarve) {
  constexpr std::size_t kOld = 600;
  make_room(10'000);
  queue.push(3, numbered_range(0, kOld));
  wait_for_the_lead();
  std::size_t next = 1'000, looks = 0, left = kOld;
  while (left != 0 && looks < 10 * kOld) {
    queue.push(0, numbered_range(next, next + 1));
    ++next;
    G* out[24];
    const std::size_t count = queue.pop_few(taker(0), out);
    left -= static_cast<std::size_t>(
        std::count_if(out, out + count, [](G* g) { return number_of(g) < kOld; }));
    ++looks;
  }
  // One at each look, as in a single line; what came meanwhile had no turn before them, but for
  // the rest of the last chunk.
  EXPECT_EQ(left, 0u);
  EXPECT_LE(looks, kOld + Chunk::kItems);
}

TEST_F(GlobalQueueTest, TheRoomSufficesForAllShardsHoweverSmallTheBatches) {
  constexpr std::size_t kRecords = 2'000;
  make_room(kRecords);
  base::Random random(support::printed_seed());
  std::vector<std::size_t> taken;
  std::size_t next = 0;
  for (int round = 0; round < support::scaled(20'000); ++round) {
    const std::uint32_t node = random.next() % kNodes;
    const std::size_t free = kRecords - queue.size();
    const std::size_t count = std::min<std::size_t>(random.next() % 40, free);
    if (random.next() % 2 == 0) {
      queue.push(node, numbered_range(next, next + count));
    } else {
      queue.push_front(node, numbered_range(next, next + count));
    }
    next += count;
    if (random.next() % 3 == 0)
      for (std::size_t number : pop_share(random.next() % kNodes)) taken.push_back(number);
  }
  while (G* g = queue.pop(0)) taken.push_back(number_of(g));
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ(taken, range(0, next));
  EXPECT_TRUE(queue.empty());
}

TEST_F(GlobalQueueTest, AmongThreadsOfAllNodesEveryGoroutineIsTakenExactlyOnce) {
  const auto per_thread = static_cast<std::size_t>(support::scaled(50'000));
  make_room(kNodes * per_thread);
  std::vector<std::atomic<std::uint8_t>> taken(kNodes * per_thread);
  std::atomic<std::size_t> left{kNodes * per_thread};
  std::vector<std::thread> threads;
  for (std::uint32_t node = 0; node < kNodes; ++node) {
    threads.emplace_back([&, node] {
      std::size_t next = node * per_thread;
      const std::size_t end = next + per_thread;
      while (left.load(std::memory_order_relaxed) != 0) {
        const std::size_t count = std::min<std::size_t>(next % 50 + 1, end - next);
        queue.push(next % 3 == 0 ? (node + 1) % kNodes : node, numbered_range(next, next + count));
        next += count;
        G* out[129];
        std::size_t got = queue.pop_share(taker(node), std::span(out).first(128));
        if (G* g = next % 7 == 0 ? queue.pop(node) : nullptr) out[got++] = g;
        for (std::size_t i = 0; i < got; ++i) taken[number_of(out[i])].fetch_add(1);
        left.fetch_sub(got, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < taken.size(); ++i) ASSERT_EQ(taken[i].load(), 1) << i;
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace magpie::sched
