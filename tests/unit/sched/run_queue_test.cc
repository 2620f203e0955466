// run_queue_test.cc: the ring of a P and the slot ahead of it.

#include "sched/core/run_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/fence.h"
#include "base/random.h"
#include "support/test_length.h"
#include "unit/sched/numbered.h"

namespace magpie::sched {
namespace {

constexpr std::size_t kSlots = RunQueue::kSlots;
constexpr std::size_t kHalf = RunQueue::kHalf;

void fill(RunQueue& queue, std::size_t first, std::size_t end) {
  for (std::size_t i = first; i < end; ++i) ASSERT_TRUE(queue.push(numbered(i)));
}

std::vector<std::size_t> drain(RunQueue& queue) {
  std::vector<std::size_t> all;
  while (G* g = queue.pop()) all.push_back(number_of(g));
  return all;
}

TEST(RunQueue, AnEmptyRingGivesNothing) {
  RunQueue queue;
  EXPECT_EQ(queue.pop(), nullptr);
  EXPECT_EQ(queue.next.take(), nullptr);
  EXPECT_TRUE(queue.is_empty());
  EXPECT_TRUE(queue.looks_empty());
  EXPECT_EQ(queue.size(), 0u);
}

TEST(RunQueue, GoroutinesLeaveInTheOrderInWhichTheyCame) {
  RunQueue queue;
  fill(queue, 0, 200);
  EXPECT_EQ(drain(queue), range(0, 200));
}

TEST(RunQueue, TheOrderHoldsWhenTheRingWrapsAround) {
  RunQueue queue;
  std::size_t pushed = 0, popped = 0;
  for (std::size_t round = 0; round < 2000; ++round) {
    for (std::size_t i = 0; i < round % 7; ++i) {
      if (queue.push(numbered(pushed))) ++pushed;
    }
    for (std::size_t i = 0; i < round % 5; ++i) {
      G* g = queue.pop();
      if (g == nullptr) break;
      ASSERT_EQ(number_of(g), popped++);
    }
  }
  EXPECT_GT(popped, 2 * kSlots);
  EXPECT_EQ(drain(queue), range(popped, pushed));
}

TEST(RunQueue, TheRingHolds256AndRefusesTheNext) {
  RunQueue queue;
  fill(queue, 0, 256);
  EXPECT_FALSE(queue.push(numbered(256)));
  EXPECT_EQ(queue.size(), 256u);
  EXPECT_EQ(drain(queue), range(0, 256));
}

TEST(RunQueue, APopFromAFullRingMakesRoomForOne) {
  RunQueue queue;
  fill(queue, 0, kSlots);
  EXPECT_EQ(number_of(queue.pop()), 0u);
  EXPECT_TRUE(queue.push(numbered(kSlots)));
  EXPECT_FALSE(queue.push(numbered(kSlots + 1)));
  EXPECT_EQ(drain(queue), range(1, kSlots + 1));
}

TEST(RunQueue, TheNextSlotIsApartFromTheRing) {
  RunQueue queue;
  fill(queue, 0, kSlots);
  EXPECT_EQ(queue.next.put(numbered(999)), nullptr);
  EXPECT_EQ(queue.size(), kSlots);
  EXPECT_EQ(queue.next.peek(), numbered(999));
  EXPECT_EQ(queue.next.take(), numbered(999));
  EXPECT_EQ(queue.next.take(), nullptr);
  EXPECT_EQ(drain(queue), range(0, kSlots));
}

TEST(RunQueue, WhoeverWasToRunNextIsHandedBackWhenReplaced) {
  RunQueue queue;
  EXPECT_EQ(queue.next.put(numbered(1)), nullptr);
  EXPECT_EQ(queue.next.put(numbered(2)), numbered(1));
  EXPECT_EQ(queue.next.take(), numbered(2));
}

TEST(RunQueue, OnlyTheOneInTheNextSlotCanBeTakenBack) {
  RunQueue queue;
  EXPECT_FALSE(queue.next.take_if(numbered(1)));
  EXPECT_EQ(queue.next.put(numbered(1)), nullptr);
  EXPECT_FALSE(queue.next.take_if(numbered(2)));
  EXPECT_TRUE(queue.next.take_if(numbered(1)));
  EXPECT_FALSE(queue.next.take_if(numbered(1)));
  EXPECT_TRUE(queue.is_empty());
}

TEST(RunQueue, ANextSlotIsStolenOnlyIfItHasNotChanged) {
  RunQueue queue;
  EXPECT_EQ(queue.next.put(numbered(1)), nullptr);
  EXPECT_FALSE(queue.next.steal(numbered(2)));
  EXPECT_TRUE(queue.next.steal(numbered(1)));
  EXPECT_EQ(queue.next.take(), nullptr);
}

TEST(RunQueue, AQueueWithOnlyANextSlotFilledIsNotEmpty) {
  RunQueue queue;
  EXPECT_EQ(queue.next.put(numbered(1)), nullptr);
  EXPECT_FALSE(queue.is_empty());
  EXPECT_FALSE(queue.looks_empty());
}

// What a thief gets from a ring of `count`: how many left it, which one to run, and the rest in
// order.
void expect_steal(std::size_t count, std::size_t stolen) {
  RunQueue victim, thief;
  fill(victim, 0, count);
  std::size_t moved = 0;
  G* to_run = thief.steal_half(victim, moved);
  ASSERT_NE(to_run, nullptr);
  EXPECT_EQ(moved, stolen);
  EXPECT_EQ(number_of(to_run), stolen - 1);
  EXPECT_EQ(drain(thief), range(0, stolen - 1));
  EXPECT_EQ(drain(victim), range(stolen, count));
}

TEST(RunQueue, AThiefTakesTheOldestHalfOfFour) { expect_steal(4, 2); }
TEST(RunQueue, HalfOfFiveIsThree) { expect_steal(5, 3); }
TEST(RunQueue, EvenASingleGoroutineIsStolen) { expect_steal(1, 1); }
TEST(RunQueue, HalfOfAFullRingIs128) { expect_steal(kSlots, kHalf); }

TEST(RunQueue, ThereIsNothingToStealFromAnEmptyRing) {
  RunQueue victim, thief;
  std::size_t moved = 0;
  EXPECT_EQ(thief.steal_half(victim, moved), nullptr);
  EXPECT_EQ(moved, 0u);
  EXPECT_EQ(victim.next.put(numbered(1)), nullptr);
  EXPECT_EQ(thief.steal_half(victim, moved), nullptr);  // the next slot is no part of the ring
}

TEST(RunQueue, StolenGoroutinesCanBeStolenAgain) {
  RunQueue first, second, third;
  fill(first, 0, 8);
  std::size_t moved = 0;
  EXPECT_EQ(number_of(second.steal_half(first, moved)), 3u);  // 0 1 2 stay with the second
  EXPECT_EQ(number_of(third.steal_half(second, moved)), 1u);
  EXPECT_EQ(moved, 2u);
  EXPECT_EQ(drain(third), range(0, 1));
  EXPECT_EQ(drain(second), range(2, 3));
  EXPECT_EQ(drain(first), range(4, 8));
}

TEST(RunQueue, TheOwnerOfAShortRingReservesOneAtATime) {
  RunQueue queue;
  fill(queue, 0, RunQueue::kReserveShare - 1);
  EXPECT_EQ(number_of(queue.pop()), 0u);
  EXPECT_EQ(queue.size(), RunQueue::kReserveShare - 2);
}

TEST(RunQueue, ThievesAreDeniedAtMostASmallReservedBatch) {
  RunQueue victim, thief;
  fill(victim, 0, kSlots);
  ASSERT_EQ(number_of(victim.pop()), 0u);
  const std::size_t reserved = kSlots - 1 - victim.size();
  EXPECT_LT(reserved, RunQueue::kReserve);

  std::size_t moved = 0;
  G* to_run = thief.steal_half(victim, moved);
  ASSERT_NE(to_run, nullptr);
  const std::size_t oldest_unreserved = 1 + reserved;
  EXPECT_EQ(number_of(to_run), oldest_unreserved + moved - 1);
  EXPECT_EQ(drain(thief), range(oldest_unreserved, oldest_unreserved + moved - 1));
  for (std::size_t i = 1; i <= reserved; ++i) EXPECT_EQ(number_of(victim.pop()), i);
  EXPECT_EQ(number_of(victim.pop()), oldest_unreserved + moved);
}

// A ring of which the owner has reserved some, and thieves have taken all the others.
std::size_t leave_only_reserved(RunQueue& queue) {
  fill(queue, 0, kSlots);
  EXPECT_EQ(number_of(queue.pop()), 0u);
  RunQueue thief;
  std::size_t moved = 0, stolen = 0;
  while (thief.steal_half(queue, moved) != nullptr) {
    stolen += moved;
    drain(thief);
  }
  return kSlots - 1 - stolen;
}

TEST(RunQueue, ReservedGoroutinesCountForTheOwnerOnly) {
  RunQueue queue;
  const std::size_t reserved = leave_only_reserved(queue);
  ASSERT_GT(reserved, 0u);
  EXPECT_TRUE(queue.looks_empty());
  EXPECT_FALSE(queue.is_empty());
  EXPECT_EQ(drain(queue), range(1, 1 + reserved));
  EXPECT_TRUE(queue.is_empty());
}

TEST(RunQueue, AFullRingGivesUpItsOldestHalfInOrder) {
  RunQueue queue;
  fill(queue, 0, kSlots);
  G* out[kHalf];
  ASSERT_EQ(queue.take_half(out), kHalf);
  for (std::size_t i = 0; i < kHalf; ++i) EXPECT_EQ(number_of(out[i]), i);
  fill(queue, kSlots, kSlots + kHalf);
  EXPECT_FALSE(queue.push(numbered(0)));
  EXPECT_EQ(drain(queue), range(kHalf, kSlots + kHalf));
}

TEST(RunQueue, TheHalfOfAFullRingBeginsWithWhatTheOwnerHadReserved) {
  RunQueue queue;
  fill(queue, 0, kSlots);
  ASSERT_EQ(number_of(queue.pop()), 0u);
  fill(queue, kSlots, kSlots + 1);
  G* out[kHalf];
  const std::size_t taken = queue.take_half(out);
  ASSERT_GT(taken, 0u);
  ASSERT_LE(taken, kHalf);
  for (std::size_t i = 0; i < taken; ++i) EXPECT_EQ(number_of(out[i]), i + 1);
  EXPECT_EQ(drain(queue), range(1 + taken, kSlots + 1));
}

TEST(RunQueue, ARingFullOfGapsBehindAReservedGoroutineIsFreedByTakingThatOne) {
  RunQueue queue;
  const std::size_t reserved = leave_only_reserved(queue);
  ASSERT_GT(reserved, 0u);
  std::size_t pushed = 0;
  while (queue.push(numbered(kSlots + pushed))) ++pushed;
  ASSERT_LT(pushed + reserved, kSlots);  // refused although there are gaps

  G* out[kHalf];
  const std::size_t taken = queue.take_half(out);
  ASSERT_GE(taken, reserved);
  for (std::size_t i = 0; i < reserved; ++i) EXPECT_EQ(number_of(out[i]), i + 1);
  EXPECT_TRUE(queue.push(numbered(kSlots + pushed)));
  EXPECT_EQ(drain(queue), range(kSlots + taken - reserved, kSlots + pushed + 1));
}

// One owner pushes, pops, fills the next slot and spills; thieves rob it and each other.
TEST(RunQueue, AmongThreadsEveryGoroutineIsTakenExactlyOnce) {
  base::prepare_fences();
  constexpr std::size_t kThieves = 3;
  const std::uint64_t seed = support::printed_seed();
  const auto total = static_cast<std::size_t>(support::scaled(3'000'000));
  std::vector<std::atomic<std::uint8_t>> taken(total);
  auto take = [&taken](G* g) { taken[number_of(g)].fetch_add(1, std::memory_order_relaxed); };

  auto queues = std::make_unique<RunQueue[]>(1 + kThieves);
  RunQueue& owned = queues[0];
  std::atomic<bool> over{false};
  std::atomic<std::size_t> ready_thieves{0};

  std::vector<std::thread> thieves;
  for (std::size_t me = 1; me <= kThieves; ++me) {
    thieves.emplace_back([&, me] {
      base::Random random(seed + me);
      RunQueue& mine = queues[me];
      ready_thieves.fetch_add(1);
      while (!over.load(std::memory_order_acquire)) {
        RunQueue& victim = queues[random.next() % (1 + kThieves)];
        if (&victim == &mine) continue;
        std::size_t moved = 0;
        if (G* g = mine.steal_half(victim, moved)) take(g);
        if (G* g = victim.next.peek(); g != nullptr && victim.next.steal(g)) take(g);
        // Keeps what it stole for a while, so that it is robbed in turn.
        for (std::uint32_t i = random.next() % 64; i > 0; --i) std::this_thread::yield();
        while (G* g = mine.pop()) take(g);
      }
    });
  }

  while (ready_thieves.load() < kThieves) std::this_thread::yield();

  base::Random random(seed);
  auto push_or_spill = [&](G* g) {
    while (!owned.push(g)) {
      G* out[kHalf];
      const std::size_t count = owned.take_half(out);
      for (std::size_t i = 0; i < count; ++i) take(out[i]);
    }
  };
  for (std::size_t i = 0; i < total;) {
    for (std::uint32_t burst = random.next() % 300; burst > 0 && i < total; --burst, ++i) {
      if (random.next() % 2 == 0) {
        push_or_spill(numbered(i));
      } else if (G* displaced = owned.next.put(numbered(i))) {
        push_or_spill(displaced);
      }
    }
    for (std::uint32_t burst = random.next() % 200; burst > 0; --burst) {
      G* g = random.next() % 4 == 0 ? owned.next.take() : owned.pop();
      if (g != nullptr) take(g);
    }
  }
  if (G* g = owned.next.take()) take(g);
  while (G* g = owned.pop()) take(g);
  over.store(true, std::memory_order_release);
  for (std::thread& thief : thieves) thief.join();

  for (std::size_t i = 0; i < total; ++i) {
    ASSERT_EQ(taken[i].load(), 1) << "goroutine " << i << " of " << total;
  }
}

}  // namespace
}  // namespace magpie::sched
