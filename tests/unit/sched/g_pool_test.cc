// g_pool_test.cc: memory for goroutine records.

#include "sched/core/g_pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <new>
#include <set>
#include <thread>
#include <vector>

#include "base/os.h"

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
  GlobalQueue queue;
  GPool pool(queue);
  const std::vector<G*> all = take(pool, 10'000);
  EXPECT_EQ(std::set<G*>(all.begin(), all.end()).size(), all.size());
  for (G* g : all) {
    EXPECT_EQ(g->state.load(), GState::free);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(g) % alignof(G), 0u);
  }
}

TEST(GPool, RecordsGivenBackAreTakenBeforeNewOnesAreMade) {
  GlobalQueue queue;
  GPool pool(queue);
  std::vector<G*> all = take(pool, 500);
  pool.give(all);
  std::vector<G*> again = take(pool, 500);
  EXPECT_EQ(std::set<G*>(again.begin(), again.end()), std::set<G*>(all.begin(), all.end()));
}

TEST(GPool, ForEachVisitsEveryRecordEverMadeOnce) {
  GlobalQueue queue;
  GPool pool(queue);
  std::vector<G*> all = take(pool, 5000);
  pool.give(std::span(all).first(100));
  std::multiset<G*> visited;
  pool.for_each([&](G* g) { visited.insert(g); });
  EXPECT_EQ(visited, std::multiset<G*>(all.begin(), all.end()));
}

TEST(GPool, TheGlobalQueueHasRoomForEveryRecord) {
  GlobalQueue queue;
  GPool pool(queue);
  const std::vector<G*> all = take(pool, 20'000);
  for (G* g : all) queue.push(g);
  for (G* g : all) ASSERT_EQ(queue.pop(), g);
}

TEST(GPool, WithoutMemoryTakingThrowsAndWorksAgainLater) {
  GlobalQueue queue;
  GPool pool(queue);
  decltype(base::Os::map)::Function* const real_map = base::os().map;
  base::os().map = [](void*, std::size_t, int, int, int, off_t) -> void* { return MAP_FAILED; };
  G* g = nullptr;
  EXPECT_EQ(pool.take({&g, 1}), 0u);
  base::os().map = real_map;
  EXPECT_EQ(pool.take({&g, 1}), 1u);
}

TEST(GPool, ThreadsNeverHoldTheSameRecord) {
  GlobalQueue queue;
  GPool pool(queue);
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
  GlobalQueue queue;
  GPool pool(queue);
  GCache cache;
  G* first = cache.take(pool);
  G* second = cache.take(pool);
  cache.give(pool, first);
  cache.give(pool, second);
  EXPECT_EQ(cache.take(pool), second);
  EXPECT_EQ(cache.take(pool), first);
  cache.give_all(pool);
}

TEST(GCache, WhatACacheCannotHoldGoesBackToThePool) {
  GlobalQueue queue;
  GPool pool(queue);
  const std::vector<G*> all = take(pool, 2000);
  GCache cache;
  for (G* g : all) cache.give(pool, g);
  cache.give_all(pool);
  const std::vector<G*> again = take(pool, 2000);
  EXPECT_EQ(std::set<G*>(again.begin(), again.end()), std::set<G*>(all.begin(), all.end()));
}

TEST(GCache, RecordsMoveFromOneCacheToAnotherThroughThePool) {
  GlobalQueue queue;
  GPool pool(queue);
  GCache ours, theirs;
  std::set<G*> all;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 1000; ++i) {  // made here, ended there
      G* g = ours.take(pool);
      all.insert(g);
      theirs.give(pool, g);
    }
  }
  EXPECT_LT(all.size(), 2000u);  // reused, not made anew each round
  ours.give_all(pool);
  theirs.give_all(pool);
}

}  // namespace
}  // namespace magpie::sched
