// next_slot_test.cc: the slot ahead of a P's ring, used by its owner and by thieves at the same
// time.

#include "sched/core/next_slot.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/random.h"
#include "support/test_length.h"
#include "unit/sched/numbered.h"

namespace magpie::sched {
namespace {

class NextSlotTest : public ::testing::Test {
 protected:
  NextSlotTest() { base::prepare_fences(); }
  NextSlot slot;
};

TEST_F(NextSlotTest, TheOwnerTakesWhatItPut) {
  EXPECT_EQ(slot.take(), nullptr);
  EXPECT_EQ(slot.put(numbered(1)), nullptr);
  EXPECT_EQ(slot.peek(), numbered(1));
  EXPECT_EQ(slot.take(), numbered(1));
  EXPECT_EQ(slot.peek(), nullptr);
}

TEST_F(NextSlotTest, PuttingASecondOneHandsTheFirstBack) {
  EXPECT_EQ(slot.put(numbered(1)), nullptr);
  EXPECT_EQ(slot.put(numbered(2)), numbered(1));
  EXPECT_EQ(slot.take(), numbered(2));
}

TEST_F(NextSlotTest, OnlyTheOneThatIsThereCanBeTakenByName) {
  EXPECT_FALSE(slot.take_if(numbered(1)));
  EXPECT_EQ(slot.put(numbered(1)), nullptr);
  EXPECT_FALSE(slot.take_if(numbered(2)));
  EXPECT_TRUE(slot.take_if(numbered(1)));
  EXPECT_FALSE(slot.take_if(numbered(1)));
}

TEST_F(NextSlotTest, AThiefTakesOnlyTheOneItSaw) {
  EXPECT_FALSE(slot.steal(numbered(1)));
  EXPECT_EQ(slot.put(numbered(1)), nullptr);
  EXPECT_FALSE(slot.steal(numbered(2)));
  EXPECT_TRUE(slot.steal(numbered(1)));
  EXPECT_FALSE(slot.steal(numbered(1)));
  EXPECT_EQ(slot.take(), nullptr);
}

TEST_F(NextSlotTest, AmongThreadsEveryGoroutineLeavesExactlyOnce) {
  constexpr int kThieves = 2;
  base::Random random(support::printed_seed());
  const auto total = static_cast<std::size_t>(support::scaled(1'000'000));
  std::vector<std::atomic<std::uint8_t>> left(total);
  auto leave = [&left](G* g) { left[number_of(g)].fetch_add(1, std::memory_order_relaxed); };
  std::atomic<int> ready_thieves{0};
  std::atomic<bool> over{false};

  std::vector<std::thread> thieves;
  for (int i = 0; i < kThieves; ++i) {
    thieves.emplace_back([&] {
      ready_thieves.fetch_add(1);
      while (!over.load(std::memory_order_acquire)) {
        if (G* g = slot.peek(); g != nullptr && slot.steal(g)) leave(g);
      }
    });
  }
  while (ready_thieves.load() < kThieves) std::this_thread::yield();

  for (std::size_t i = 0; i < total; ++i) {
    if (G* displaced = slot.put(numbered(i))) leave(displaced);
    switch (random.next() % 4) {
      case 0:
        if (G* g = slot.take()) leave(g);
        break;
      case 1:
        if (slot.take_if(numbered(i))) leave(numbered(i));
        break;
      default:
        break;
    }
  }
  if (G* g = slot.take()) leave(g);
  over.store(true, std::memory_order_release);
  for (std::thread& thief : thieves) thief.join();
  for (std::size_t i = 0; i < total; ++i) ASSERT_EQ(left[i].load(), 1) << i;
}

}  // namespace
}  // namespace magpie::sched
