// pool_test.cc: stacks of one size, reused hot.

#include "stack/pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <set>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "memory.h"
#include "stack/guard.h"
#include "stack/pools.h"
#include "support/os_faults.h"

namespace magpie::stack {
namespace {

constexpr std::size_t kPooledSize = 256 * 1024;
constexpr std::size_t kWarm = 4096;
constexpr std::int64_t kSecond = 1'000'000'000;

std::vector<Stack*> take(Pool& pool, std::size_t count) {
  std::vector<Stack*> stacks;
  for (std::size_t i = 0; i < count; ++i) {
    stacks.push_back(pool.take());
    if (stacks.back() == nullptr) ADD_FAILURE() << "no stack " << i;
  }
  return stacks;
}

TEST(Pool, StacksInUseDoNotOverlap) {
  Pool pool(kPooledSize);
  std::set<std::byte*> lows;
  for (Stack* stack : take(pool, 1000)) {
    EXPECT_TRUE(stack->pooled);
    EXPECT_EQ(stack->usable() + guard_bytes(), kPooledSize - 64 * ((sizeof(Stack) + 63) / 64));
    const auto next = lows.lower_bound(stack->low);
    if (next != lows.end()) {
      EXPECT_GE(*next - stack->low, static_cast<std::ptrdiff_t>(kPooledSize));
    }
    if (next != lows.begin()) {
      EXPECT_GE(stack->low - *std::prev(next), static_cast<std::ptrdiff_t>(kPooledSize));
    }
    lows.insert(stack->low);
  }
  EXPECT_EQ(pool.usage().stacks, 1000u);
}

TEST(Pool, TheLastStackGivenIsTheFirstTaken) {
  Pool pool(kPooledSize);
  const std::vector<Stack*> stacks = take(pool, 3);
  for (Stack* stack : stacks) pool.give(stack);
  EXPECT_EQ(pool.take(), stacks[2]);
  EXPECT_EQ(pool.take(), stacks[1]);
  EXPECT_EQ(pool.take(), stacks[0]);
  EXPECT_EQ(pool.usage().stacks, 3u);
}

TEST(Pool, AStackThatWentDeepGivesItsMemoryBackButKeepsItsFirstPages) {
  Pool pool(kPooledSize);
  Stack* stack = pool.take();
  ASSERT_NE(stack, nullptr);
  touch(stack->low, reinterpret_cast<std::byte*>(stack));
  ASSERT_GE(resident_pages(stack->low, stack), (kPooledSize - guard_bytes()) / page_size() - 1);
  pool.give(stack);
  ASSERT_EQ(pool.take(), stack);
  const std::size_t kept = resident_pages(stack->low, stack) + 1;  // and that of the record
  EXPECT_LE(kept * page_size(), std::max<std::size_t>(16 * 1024, page_size()));
  EXPECT_GE(kept, 1u);
}

TEST(Pool, AFrameSoLargeThatItSkippedPagesIsGivenBackToo) {
  Pool pool(kPooledSize);
  Stack* stack = pool.take();
  ASSERT_NE(stack, nullptr);
  touch(stack->low, stack->low + 1);  // the deepest page only
  ASSERT_EQ(resident_pages(stack->low, stack->low + page_size()), 1u);
  for (int times = 0; times < 32; ++times) {
    pool.give(stack);
    ASSERT_EQ(pool.take(), stack);
  }
  EXPECT_EQ(resident_pages(stack->low, stack->low + page_size()), 0u);
}

// All that may be trimmed at that time.
void trim_all(Pool& pool, std::int64_t now_ns) {
  while (pool.next_trim_ns() <= now_ns) pool.trim(now_ns);
}

TEST(Pool, BeyondTheWarmOnesStacksThatNobodyNeededForASecondCostNoMemory) {
  Pool pool(64 * 1024);
  const std::vector<Stack*> stacks = take(pool, kWarm + 500);
  const std::vector<std::byte*> lows = [&] {
    std::vector<std::byte*> all;
    for (Stack* stack : stacks) all.push_back(stack->low);
    return all;
  }();
  const std::int64_t now = base::coarse_now_ns();
  pool.give(stacks);
  EXPECT_EQ(pool.usage().warm, kWarm + 500);
  EXPECT_GE(pool.next_trim_ns(), now + kSecond);
  trim_all(pool, pool.next_trim_ns() - 1);
  EXPECT_EQ(pool.usage().cold, 0u);
  trim_all(pool, pool.next_trim_ns());
  EXPECT_EQ(pool.usage().warm, kWarm);
  EXPECT_EQ(pool.usage().cold, 500u);
  EXPECT_EQ(pool.next_trim_ns(), std::numeric_limits<std::int64_t>::max());
  std::size_t with_memory = 0;
  for (std::byte* low : lows) {
    if (resident_pages(low, low + 64 * 1024 - guard_bytes()) != 0) ++with_memory;
  }
  EXPECT_EQ(with_memory, kWarm);
}

TEST(Pool, StacksThatWereNeededInBetweenStayWarm) {
  Pool pool(64 * 1024);
  pool.give(take(pool, kWarm + 3000));
  pool.give(take(pool, 2000));  // so 1000 of those beyond were never needed
  trim_all(pool, pool.next_trim_ns());
  EXPECT_EQ(pool.usage().cold, 1000u);
  trim_all(pool, pool.next_trim_ns());
  EXPECT_EQ(pool.usage().cold, 3000u);
}

TEST(Pool, ColdStacksAreUsedBeforeNewOnesAreCarved) {
  Pool pool(64 * 1024);
  constexpr std::size_t kStacks = kWarm + 100;
  pool.give(take(pool, kStacks));
  trim_all(pool, pool.next_trim_ns());
  EXPECT_EQ(pool.usage().cold, 100u);
  std::set<std::byte*> lows;
  for (Stack* stack : take(pool, kStacks)) {
    EXPECT_TRUE(stack->pooled);
    touch(stack->low, static_cast<std::byte*>(stack->top()));
    lows.insert(stack->low);
  }
  EXPECT_EQ(lows.size(), kStacks);
  EXPECT_EQ(pool.usage().stacks, kStacks);
  EXPECT_EQ(pool.usage().warm + pool.usage().cold, 0u);
}

TEST(Pool, NeighbouringStacksBeginAtManyDifferentPageOffsets) {
  Pool pool(kPooledSize);
  std::set<std::uintptr_t> offsets;
  for (Stack* stack : take(pool, 100)) {
    offsets.insert(reinterpret_cast<std::uintptr_t>(stack->top()) % page_size());
  }
  EXPECT_GE(offsets.size(), kColours / 2);
}

TEST(Pool, GivesAllItsMappingsBackWhenItDies) {
  const std::size_t before = count_mappings();
  for (int round = 0; round < 20; ++round) {
    Pool pool(64 * 1024);
    take(pool, 100);
  }
  EXPECT_LE(count_mappings(), before + 10);
}

TEST(Pool, WithoutMemoryGivesNullLosesNothingAndWorksAgainAfterwards) {
  Pool pool(kPooledSize);
  {
    support::MapFaults refuse_all;
    for (int i = 0; i < 10; ++i) EXPECT_EQ(pool.take(), nullptr);
    EXPECT_GT(support::MapFaults::refusals(), 0);
    EXPECT_EQ(pool.usage().stacks, 0u);
  }
  Stack* stack = pool.take();
  ASSERT_NE(stack, nullptr);
  {
    support::MapFaults refuse_all;
    pool.give(stack);
    EXPECT_EQ(pool.take(), stack);  // what there is can still be used
    const std::size_t left_in_slab = (std::size_t{64} << 20) / distance_of(kPooledSize) - 1;
    take(pool, left_in_slab);
    EXPECT_EQ(pool.take(), nullptr);
    EXPECT_EQ(pool.usage().stacks, left_in_slab + 1);
  }
  EXPECT_NE(pool.take(), nullptr);
}

TEST(Pool, MakesDoWithSmallerSlabsWhenLargeOnesAreRefused) {
  support::MapFaults refuse_large(support::Refuse::everything, 4 * kPooledSize);
  Pool pool(kPooledSize);
  std::set<Stack*> stacks;
  for (Stack* stack : take(pool, 100)) stacks.insert(stack);
  EXPECT_EQ(stacks.size(), 100u);
  EXPECT_GT(support::MapFaults::refusals(), 0);
}

TEST(Pool, SeveralThreadsMayTakeAndGiveAtTheSameTime) {
  Pool pool(64 * 1024);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool] {
      for (int round = 0; round < 200; ++round) {
        const std::vector<Stack*> stacks = take(pool, 8);
        for (Stack* stack : stacks) std::memset(stack->low, 1, 64);
        pool.give(stacks);
      }
    });
  }
  threads.clear();
  EXPECT_LE(pool.usage().stacks, 32u);
  EXPECT_EQ(pool.usage().warm, pool.usage().stacks);
}

TEST(StackCache, TheLastStackGivenIsTheFirstTakenAndThePoolIsNotAsked) {
  Pools pools(kPooledSize);
  Pool& pool = pools.of(0);
  Cache cache;
  Stack* first = cache.take(pools, 0);
  Stack* second = cache.take(pools, 0);
  cache.give(pools, first);
  cache.give(pools, second);
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(cache.take(pools, 0), second);
  EXPECT_EQ(cache.take(pools, 0), first);
  EXPECT_EQ(pool.usage().warm, 0u);
}

TEST(StackCache, KeepsDeepMemoryUntilItGivesTheStackToThePool) {
  Pools pools(kPooledSize);
  Pool& pool = pools.of(0);
  Cache cache;
  Stack* stack = cache.take(pools, 0);
  touch(stack->low, static_cast<std::byte*>(stack->top()));
  cache.give(pools, stack);
  EXPECT_EQ(resident_pages(stack->low, stack->low + 4 * page_size()), 4u);
  cache.give_all(pools);
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(resident_pages(stack->low, stack->low + 4 * page_size()), 0u);
  EXPECT_EQ(pool.usage().warm, 1u);
}

TEST(StackCache, WhenFullPassesItsOldestHalfOnAndKeepsTheNewest) {
  Pools pools(kPooledSize);
  Pool& pool = pools.of(0);
  Cache cache;
  const std::vector<Stack*> stacks = take(pool, 65);
  for (Stack* stack : stacks) cache.give(pools, stack);
  EXPECT_EQ(cache.size(), 33u);
  EXPECT_EQ(pool.usage().warm, 32u);
  EXPECT_EQ(cache.take(pools, 0), stacks[64]);
  EXPECT_EQ(cache.take(pools, 0), stacks[63]);
}

TEST(StackCache, RefillsFromThePoolAFewAtATimeAndLosesNone) {
  Pools pools(kPooledSize);
  Pool& pool = pools.of(0);
  const std::vector<Stack*> stacks = take(pool, 20);
  pool.give(stacks);
  Cache cache;
  std::set<Stack*> got;
  for (int i = 0; i < 20; ++i) {
    got.insert(cache.take(pools, 0));
    EXPECT_EQ(got.size() + cache.size() + pool.usage().warm, 20u);
  }
  EXPECT_EQ(got, std::set<Stack*>(stacks.begin(), stacks.end()));
}

TEST(StackPools, EachStackGoesBackToThePoolThatItIsFrom) {
  Pools pools(kPooledSize);
  pools.use(2);
  std::vector<Stack*> mixed;
  for (std::uint32_t i = 0; i < 200; ++i) mixed.push_back(pools.take(i % 3 == 0 ? 1 : 0));
  pools.give(mixed);
  for (std::uint32_t number : {0u, 1u}) {
    const Pool::Usage usage = pools.of(number).usage();
    EXPECT_EQ(usage.stacks, number == 1 ? 67u : 133u);
    EXPECT_EQ(usage.warm, usage.stacks);
    EXPECT_EQ(pools.take(number)->pool_number, number);
  }
}

TEST(StackPools, ACacheThatOverflowsGivesEachPoolItsOwn) {
  Pools pools(kPooledSize);
  pools.use(2);
  Cache cache;
  for (Stack* stack : take(pools.of(1), 40)) cache.give(pools, stack);
  for (Stack* stack : take(pools.of(0), 40)) cache.give(pools, stack);
  EXPECT_EQ(pools.of(1).usage().warm, 32u);
  EXPECT_EQ(pools.of(0).usage().warm, 0u);
  cache.give_all(pools);
  EXPECT_EQ(pools.of(1).usage().warm, 40u);
  EXPECT_EQ(pools.of(0).usage().warm, 40u);
}

TEST(StackPools, WithoutMemoryAnotherPoolHelpsOut) {
  Pools pools(kPooledSize);
  pools.use(2);
  Stack* stack = pools.take(1);
  pools.give(stack);
  const std::size_t carved = 64 * 1024 * 1024 / distance_of(kPooledSize);
  support::MapFaults refuse_all;
  EXPECT_EQ(pools.take(0), stack);
  for (std::size_t i = 1; i < carved; ++i) EXPECT_NE(pools.take(0), nullptr);
  EXPECT_EQ(pools.take(0), nullptr);
}

TEST(StackCache, IsNullWithoutMemory) {
  support::MapFaults refuse_all;
  Pools pools(kPooledSize);
  Cache cache;
  EXPECT_EQ(cache.take(pools, 0), nullptr);
  EXPECT_EQ(cache.size(), 0u);
}

}  // namespace
}  // namespace magpie::stack
