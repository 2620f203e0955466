// g_pool_test.cc: memory for goroutine records.

#include "sched/core/g_pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <new>
#include <set>
#include <thread>
#include <vector>

#include "base/os.h"
#include "sched/core/shard.h"

namespace magpie::sched {
namespace {

std::vector<G*> take(GPool& pool, std::size_t count) {
  std::vector<G*> all(count);
  for (std::size_t have = 0; have < count;) {
    const std::size_t got = pool.take(std::span(all).subspan(have));
    EXPECT_GE(got, 1u);
    have += got;
  }
  return all;
}

TEST(GPool, EveryRecordIsFreeAlignedAndDifferent) {
  ChunkStore chunks;
  GPool pool(chunks);
  const std::vector<G*> all = take(pool, 10'000);
  EXPECT_EQ(std::set<G*>(all.begin(), all.end()).size(), all.size());
  for (G* g : all) {
    EXPECT_EQ(g->state.load(), GState::free);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(g) % alignof(G), 0u);
  }
}

TEST(GPool, RecordsGivenBackAreTakenBeforeNewOnesAreMade) {
  ChunkStore chunks;
  GPool pool(chunks);
  std::vector<G*> all = take(pool, 500);
  pool.give(all);
  std::vector<G*> again = take(pool, 500);
  EXPECT_EQ(std::set<G*>(again.begin(), again.end()), std::set<G*>(all.begin(), all.end()));
}

TEST(GPool, ForEachVisitsEveryRecordEverMadeOnce) {
  ChunkStore chunks;
  GPool pool(chunks);
  std::vector<G*> all = take(pool, 5000);
  pool.give(std::span(all).first(100));
  std::multiset<G*> visited;
  pool.for_each([&](G* g) { visited.insert(g); });
  EXPECT_EQ(visited, std::multiset<G*>(all.begin(), all.end()));
}

TEST(GPool, TheGlobalQueueHasRoomForEveryRecord) {
  ChunkStore chunks;
  GPool pool(chunks);
  const std::vector<G*> all = take(pool, 20'000);
  Shard queue;
  queue.set_store(chunks);
  for (G* g : all) queue.push({&g, 1});
  for (G* g : all) ASSERT_EQ(queue.pop(), g);
}

TEST(GPools, EachRecordGoesBackToThePoolOfItsNode) {
  ChunkStore chunks;
  GPools pools(chunks);
  pools.use(3);
  std::vector<G*> mixed, of_two(300);
  for (std::uint32_t i = 0; i < 900; ++i) {
    G* g = nullptr;
    ASSERT_EQ(pools.take(i % 3, {&g, 1}), 1u);
    EXPECT_EQ(g->node, i % 3);
    mixed.push_back(g);
  }
  pools.give(mixed);
  ASSERT_EQ(pools.take(2, of_two), 300u);  // all at once: they are free ones
  for (G* g : of_two) EXPECT_EQ(g->node, 2);
}

TEST(GPools, ACacheGivesRecordsOfOtherNodesBackToThem) {
  ChunkStore chunks;
  GPools pools(chunks);
  pools.use(2);
  GCache near, far;
  std::vector<G*> all;
  for (int i = 0; i < 256; ++i) all.push_back(near.take(pools, 0));
  for (G* g : all) far.give(pools, g);
  far.give_all(pools);
  std::vector<G*> again(256);
  ASSERT_EQ(pools.take(0, again), 256u);
  EXPECT_EQ(std::set<G*>(again.begin(), again.end()), std::set<G*>(all.begin(), all.end()));
}

TEST(GPool, WithoutMemoryTakingThrowsAndWorksAgainLater) {
  ChunkStore chunks;
  GPool pool(chunks);
  decltype(base::Os::map)::Function* const real_map = base::os().map;
  base::os().map = [](void*, std::size_t, int, int, int, off_t) -> void* { return MAP_FAILED; };
  G* g = nullptr;
  EXPECT_EQ(pool.take({&g, 1}), 0u);
  base::os().map = real_map;
  EXPECT_EQ(pool.take({&g, 1}), 1u);
}

TEST(GPool, ThreadsNeverHoldTheSameRecord) {
  ChunkStore chunks;
  GPool pool(chunks);
  std::vector<std::thread> threads;
  for (std::uint64_t me = 1; me <= 4; ++me) {
    threads.emplace_back([&pool, me] {
      for (int round = 0; round < 200; ++round) {
        const std::vector<G*> mine = take(pool, 50);
        for (G* g : mine) g->id = me;
        std::this_thread::yield();
        for (G* g : mine) ASSERT_EQ(g->id, me);
        pool.give(mine);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(GCache, TheRecordGivenLastIsTakenFirst) {
  ChunkStore chunks;
  GPools pools(chunks);
  GCache cache;
  G* first = cache.take(pools, 0);
  G* second = cache.take(pools, 0);
  cache.give(pools, first);
  cache.give(pools, second);
  EXPECT_EQ(cache.take(pools, 0), second);
  EXPECT_EQ(cache.take(pools, 0), first);
  cache.give_all(pools);
}

TEST(GCache, WhatACacheCannotHoldGoesBackToThePool) {
  ChunkStore chunks;
  GPools pools(chunks);
  const std::vector<G*> all = take(pools.of(0), 2000);
  GCache cache;
  for (G* g : all) cache.give(pools, g);
  cache.give_all(pools);
  const std::vector<G*> again = take(pools.of(0), 2000);
  EXPECT_EQ(std::set<G*>(again.begin(), again.end()), std::set<G*>(all.begin(), all.end()));
}

TEST(GCache, RecordsMoveFromOneCacheToAnotherThroughThePool) {
  ChunkStore chunks;
  GPools pools(chunks);
  GCache ours, theirs;
  std::set<G*> all;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 1000; ++i) {  // made here, ended there
      G* g = ours.take(pools, 0);
      all.insert(g);
      theirs.give(pools, g);
    }
  }
  EXPECT_LT(all.size(), 2000u);  // reused, not made anew each round
  ours.give_all(pools);
  theirs.give_all(pools);
}

}  // namespace
}  // namespace magpie::sched
