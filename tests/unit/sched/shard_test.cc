// shard_test.cc: the part of the global queue that belongs to one node.

#include "sched/core/shard.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"
#include "support/let_signals_in.h"
#include "support/test_length.h"
#include "unit/sched/numbered.h"

namespace magpie::sched {
namespace {

class ShardTest : public ::testing::Test {
 protected:
  ShardTest() { queue.set_store(store_); }

  void push(G* g) { queue.push({&g, 1}); }

  void make_room(std::size_t records) {
    const std::size_t bytes = ChunkStore::bytes_of_room(records);
    rooms_.push_back(std::make_unique<std::byte[]>(bytes));
    store_.add_room(rooms_.back().get(), bytes);
  }

  std::vector<std::size_t> drain() {
    std::vector<std::size_t> all;
    while (G* g = queue.pop()) all.push_back(number_of(g));
    return all;
  }

  Shard queue;

 private:
  ChunkStore store_;
  std::vector<std::unique_ptr<std::byte[]>> rooms_;
};

TEST_F(ShardTest, AnEmptyQueueGivesNothingAndNeedsNoRoom) {
  G* out[4];
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.pop(), nullptr);
  EXPECT_EQ(queue.pop_from_both(2, out, Shard::Usual::share), 0u);
}

TEST_F(ShardTest, GoroutinesLeaveInTheOrderInWhichTheyCame) {
  make_room(3000);
  for (std::size_t i = 0; i < 3000; ++i) push(numbered(i));
  EXPECT_EQ(queue.size(), 3000u);
  EXPECT_EQ(drain(), range(0, 3000));
  EXPECT_TRUE(queue.empty());
}

TEST_F(ShardTest, ABatchKeepsItsOrder) {
  make_room(3000);
  push(numbered(0));
  queue.push(numbered_range(1, 2000));
  queue.push(numbered_range(2000, 2001));
  EXPECT_EQ(drain(), range(0, 2001));
}

TEST_F(ShardTest, AnEmptyBatchChangesNothing) {
  make_room(10);
  queue.push(std::span<G* const>());
  queue.push_front({});
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.pop(), nullptr);
}

TEST_F(ShardTest, WhatIsPushedToTheFrontLeavesFirstInItsOrder) {
  make_room(3000);
  queue.push(numbered_range(1000, 1010));
  queue.push_front(numbered_range(300, 1000));
  queue.push_front(numbered_range(0, 300));
  push(numbered(1010));
  EXPECT_EQ(queue.size(), 1011u);
  EXPECT_EQ(drain(), range(0, 1011));
}

TEST_F(ShardTest, PushingToTheFrontOfAnEmptyQueueIsPushing) {
  make_room(1000);
  queue.push_front(numbered_range(0, 300));
  push(numbered(300));
  EXPECT_EQ(drain(), range(0, 301));
}

TEST_F(ShardTest, AShareIsTheSizeOverTheProcsPlusOne) {
  make_room(1000);
  queue.push(numbered_range(0, 10));
  G* out[128];
  ASSERT_EQ(queue.pop_from_both(4, out, Shard::Usual::share), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(number_of(out[i]), i);
  EXPECT_EQ(queue.size(), 7u);
}

TEST_F(ShardTest, TheOnlyProcTakesAll) {
  make_room(1000);
  queue.push(numbered_range(0, 10));
  G* out[128];
  EXPECT_EQ(queue.pop_from_both(1, out, Shard::Usual::share), 10u);
  EXPECT_TRUE(queue.empty());
}

TEST_F(ShardTest, AShareIsNeverMoreThanTheTakerHasPlaceFor) {
  make_room(1000);
  queue.push(numbered_range(0, 1000));
  G* out[128];
  ASSERT_EQ(queue.pop_from_both(1, out, Shard::Usual::share), 128u);
  for (std::size_t i = 0; i < 128; ++i) EXPECT_EQ(number_of(out[i]), i);
  EXPECT_EQ(drain(), range(128, 1000));
}

TEST_F(ShardTest, MoreProcsThanGoroutinesGetOneEach) {
  make_room(1000);
  queue.push(numbered_range(0, 3));
  G* out[128];
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(queue.pop_from_both(64, out, Shard::Usual::share), 1u);
    EXPECT_EQ(number_of(out[0]), i);
  }
}

// Real records, of which some are bound.
class BoundInShard : public ShardTest {
 protected:
  explicit BoundInShard(std::size_t count = 20'000)
      : count_(count), records_(std::make_unique<G[]>(count)) {
    make_room(count);
  }
  G* record(std::size_t i) { return &records_[i]; }
  std::vector<G*> records(std::size_t first, std::size_t end) {
    std::vector<G*> all;
    for (std::size_t i = first; i < end; ++i) all.push_back(record(i));
    return all;
  }
  G* take_bound_in(int calls) {
    for (; calls != 0; --calls)
      if (G* g = queue.take_bound()) return g;
    return nullptr;
  }

  const std::size_t count_;
  std::unique_ptr<G[]> records_;
};

TEST_F(BoundInShard, IsFoundWhereverItStands) {
  queue.push(records(0, 19'000));
  EXPECT_EQ(take_bound_in(2), nullptr);
  record(19'500)->bound = true;
  queue.push(records(19'000, 20'000));
  EXPECT_EQ(take_bound_in(1), record(19'500));
  record(19'500)->bound = false;
  EXPECT_EQ(take_bound_in(2), nullptr);
  EXPECT_EQ(queue.size(), 19'999u);
}

TEST_F(BoundInShard, IsFoundInWhatIsPutBackInFront) {
  queue.push(records(0, 1'000));
  EXPECT_EQ(queue.take_bound(), nullptr);
  record(1'500)->bound = true;
  queue.push_front(records(1'000, 2'000));
  EXPECT_EQ(queue.take_bound(), record(1'500));
}

// At the limit on threads sysmon asks every millisecond, and holds the lock meanwhile. The other
// goroutines may be a million.
TEST_F(BoundInShard, IsLookedForInEachGoroutineOnce) {
  queue.push(records(0, count_));
  const auto begin = support::cpu_time_of_this_thread();
  while (queue.take_bound() != nullptr || queue.size() != count_) {
  }
  EXPECT_EQ(take_bound_in(2), nullptr);
  const auto first = support::cpu_time_of_this_thread() - begin;
  EXPECT_EQ(take_bound_in(2'000), nullptr);
  EXPECT_LT(support::cpu_time_of_this_thread() - begin, 20 * first);
}

TEST_F(BoundInShard, AreAllFoundWhateverTheOrderOfPushesAndPops) {
  base::Random random(support::printed_seed());
  constexpr std::size_t kRecords = 1'000;
  std::vector<G*> idle = records(0, kRecords);
  std::size_t bound = 0;
  for (int round = 0; round < support::scaled(20'000); ++round) {
    G* some[16];
    std::size_t count = 0;
    switch (random.next() % 4) {
      case 0:
      case 1: {
        const bool in_front = random.next() % 2 == 0;
        for (; count < 16 && !idle.empty(); ++count, idle.pop_back()) {
          some[count] = idle.back();
          some[count]->bound = random.next() % 64 == 0;
          bound += some[count]->bound ? 1 : 0;
        }
        in_front ? queue.push_front({some, count}) : queue.push({some, count});
        break;
      }
      case 2:
        count = queue.pop_from_both(7, some, Shard::Usual::share);
        break;
      default:
        if ((some[0] = queue.take_bound()) != nullptr) count = 1;
        ASSERT_EQ(count != 0, bound != 0);
        if (count != 0) {
          ASSERT_TRUE(some[0]->bound);
        }
    }
    if (idle.size() + queue.size() == kRecords) continue;  // pushed, or nothing
    for (std::size_t i = 0; i < count; ++i) {
      bound -= some[i]->bound ? 1 : 0;
      idle.push_back(some[i]);
    }
  }
}

// Removing many Ps pushes many small batches to the front.
TEST_F(ShardTest, TheRoomSufficesHoweverSmallTheBatchesPushedToTheFront) {
  constexpr std::size_t kRecords = 896;
  make_room(kRecords);
  for (std::size_t i = kRecords; i > 0; --i) queue.push_front(numbered_range(i - 1, i));
  EXPECT_EQ(drain(), range(0, kRecords));
}

TEST_F(ShardTest, TheRoomSufficesWhateverTheOrderOfPushesAndPops) {
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
        const std::size_t taken =
            queue.pop_from_both(1 + random.next() % 8, out, Shard::Usual::share);
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

TEST_F(ShardTest, AmongThreadsEveryGoroutineIsTakenExactlyOnce) {
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
        const std::size_t got = queue.pop_from_both(kThreads, out, Shard::Usual::share);
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
