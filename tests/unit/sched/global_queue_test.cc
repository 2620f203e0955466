// global_queue_test.cc: the queue that all Ps share.

#include "sched/core/global_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"
#include "support/test_length.h"
#include "unit/sched/numbered.h"

namespace magpie::sched {
namespace {

class GlobalQueueTest : public ::testing::Test {
 protected:
  void make_room(std::size_t records) {
    const std::size_t bytes = GlobalQueue::bytes_of_room(records);
    rooms_.push_back(std::make_unique<std::byte[]>(bytes));
    queue.add_room(rooms_.back().get(), bytes);
  }

  std::vector<std::size_t> drain() {
    std::vector<std::size_t> all;
    while (G* g = queue.pop()) all.push_back(number_of(g));
    return all;
  }

  GlobalQueue queue;

 private:
  std::vector<std::unique_ptr<std::byte[]>> rooms_;
};

TEST_F(GlobalQueueTest, AnEmptyQueueGivesNothingAndNeedsNoRoom) {
  G* out[4];
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.pop(), nullptr);
  EXPECT_EQ(queue.pop_share(2, out), 0u);
}

TEST_F(GlobalQueueTest, GoroutinesLeaveInTheOrderInWhichTheyCame) {
  make_room(3000);
  for (std::size_t i = 0; i < 3000; ++i) queue.push(numbered(i));
  EXPECT_EQ(queue.size(), 3000u);
  EXPECT_EQ(drain(), range(0, 3000));
  EXPECT_TRUE(queue.empty());
}

TEST_F(GlobalQueueTest, ABatchKeepsItsOrder) {
  make_room(3000);
  queue.push(numbered(0));
  queue.push(numbered_range(1, 2000));
  queue.push(numbered_range(2000, 2001));
  EXPECT_EQ(drain(), range(0, 2001));
}

TEST_F(GlobalQueueTest, AnEmptyBatchChangesNothing) {
  make_room(10);
  queue.push(std::span<G* const>());
  queue.push_front({});
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.pop(), nullptr);
}

TEST_F(GlobalQueueTest, WhatIsPushedToTheFrontLeavesFirstInItsOrder) {
  make_room(3000);
  queue.push(numbered_range(1000, 1010));
  queue.push_front(numbered_range(300, 1000));
  queue.push_front(numbered_range(0, 300));
  queue.push(numbered(1010));
  EXPECT_EQ(queue.size(), 1011u);
  EXPECT_EQ(drain(), range(0, 1011));
}

TEST_F(GlobalQueueTest, PushingToTheFrontOfAnEmptyQueueIsPushing) {
  make_room(1000);
  queue.push_front(numbered_range(0, 300));
  queue.push(numbered(300));
  EXPECT_EQ(drain(), range(0, 301));
}

TEST_F(GlobalQueueTest, AShareIsTheSizeOverTheProcsPlusOne) {
  make_room(1000);
  queue.push(numbered_range(0, 10));
  G* out[128];
  ASSERT_EQ(queue.pop_share(4, out), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(number_of(out[i]), i);
  EXPECT_EQ(queue.size(), 7u);
}

TEST_F(GlobalQueueTest, TheOnlyProcTakesAll) {
  make_room(1000);
  queue.push(numbered_range(0, 10));
  G* out[128];
  EXPECT_EQ(queue.pop_share(1, out), 10u);
  EXPECT_TRUE(queue.empty());
}

TEST_F(GlobalQueueTest, AShareIsNeverMoreThanTheTakerHasPlaceFor) {
  make_room(1000);
  queue.push(numbered_range(0, 1000));
  G* out[128];
  ASSERT_EQ(queue.pop_share(1, out), 128u);
  for (std::size_t i = 0; i < 128; ++i) EXPECT_EQ(number_of(out[i]), i);
  EXPECT_EQ(drain(), range(128, 1000));
}

TEST_F(GlobalQueueTest, MoreProcsThanGoroutinesGetOneEach) {
  make_room(1000);
  queue.push(numbered_range(0, 3));
  G* out[128];
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(queue.pop_share(64, out), 1u);
    EXPECT_EQ(number_of(out[0]), i);
  }
}

// Removing many Ps pushes many small batches to the front.
TEST_F(GlobalQueueTest, TheRoomSufficesHoweverSmallTheBatchesPushedToTheFront) {
  constexpr std::size_t kRecords = 896;
  make_room(kRecords);
  for (std::size_t i = kRecords; i > 0; --i) queue.push_front(numbered_range(i - 1, i));
  EXPECT_EQ(drain(), range(0, kRecords));
}

TEST_F(GlobalQueueTest, TheRoomSufficesWhateverTheOrderOfPushesAndPops) {
  constexpr std::size_t kRecords = 2000;
  make_room(kRecords / 2);
  make_room(kRecords / 2);
  base::Random random(support::printed_seed());
  std::deque<std::size_t> expected;
  std::size_t next = 0;
  for (int round = 0; round < support::scaled(20'000); ++round) {
    const std::size_t count = std::min<std::size_t>(random.next() % 40, kRecords - expected.size());
    const std::vector<G*> batch = numbered_range(next, next + count);
    switch (random.next() % 4) {
      case 0:
        queue.push(batch);
        for (G* g : batch) expected.push_back(number_of(g));
        break;
      case 1:
        queue.push_front(batch);
        expected.insert(expected.begin(), count, 0);
        for (std::size_t i = 0; i < count; ++i) expected[i] = next + i;
        break;
      case 2:
        for (std::size_t i = 0; i < count && !expected.empty(); ++i) {
          ASSERT_EQ(number_of(queue.pop()), expected.front());
          expected.pop_front();
        }
        break;
      case 3: {
        G* out[128];
        const std::size_t taken = queue.pop_share(1 + random.next() % 8, out);
        for (std::size_t i = 0; i < taken; ++i) {
          ASSERT_EQ(number_of(out[i]), expected.front());
          expected.pop_front();
        }
        break;
      }
    }
    next += count;
    ASSERT_EQ(queue.size(), expected.size());
  }
}

TEST_F(GlobalQueueTest, AmongThreadsEveryGoroutineIsTakenExactlyOnce) {
  constexpr std::size_t kThreads = 4;
  const auto per_thread = static_cast<std::size_t>(support::scaled(100'000));
  make_room(kThreads * per_thread);
  std::vector<std::atomic<std::uint8_t>> taken(kThreads * per_thread);
  std::atomic<std::size_t> left{kThreads * per_thread};

  std::vector<std::thread> threads;
  for (std::size_t me = 0; me < kThreads; ++me) {
    threads.emplace_back([&, me] {
      std::size_t next = me * per_thread;
      const std::size_t end = next + per_thread;
      G* out[128];
      while (left.load(std::memory_order_relaxed) != 0) {
        const std::size_t count = std::min<std::size_t>(next % 50 + 1, end - next);
        if (next % 3 == 0) {
          queue.push_front(numbered_range(next, next + count));
        } else {
          queue.push(numbered_range(next, next + count));
        }
        next += count;
        const std::size_t got = queue.pop_share(kThreads, out);
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
