// task_group_test.cc: goroutines that are waited for together.

#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using support::eventually;

RT_TEST(TaskGroup, WaitReturnsWhenAllHaveEnded) {
  TaskGroup group;
  std::atomic<int> ended{0};
  for (int i = 0; i < 100; ++i) {
    group.go([&] {
      yield();
      ++ended;
    });
  }
  group.wait();
  EXPECT_EQ(ended, 100);
}

RT_TEST(TaskGroup, WaitOfAnEmptyGroupReturnsAtOnce) {
  TaskGroup group;
  group.wait();
  group.wait();
}

RT_TEST(TaskGroup, TheFirstExceptionCancelsTheOthersAndIsThrownByWait) {
  TaskGroup group;
  std::atomic<int> cancelled{0};
  for (int i = 0; i < 10; ++i) {
    group.go([&](const Context& context) {
      context.done().recv();
      ++cancelled;
      throw std::runtime_error("late");
    });
  }
  group.go([] { throw std::invalid_argument("first"); });
  EXPECT_THROW(group.wait(), std::invalid_argument);
  EXPECT_EQ(cancelled, 10);
}

RT_TEST(TaskGroup, IsCancelledWithItsParent) {
  Context parent = Context::background().with_cancel();
  TaskGroup group(parent);
  std::atomic<bool> told{false};
  group.go([&] {
    group.context().done().recv();
    told = true;
  });
  parent.cancel();
  group.wait();
  EXPECT_TRUE(told);
}

RT_TEST(TaskGroup, WaitCancelsItsContext) {
  TaskGroup group;
  Context context = group.context();
  group.go([] {});
  group.wait();
  EXPECT_TRUE(context.cancelled());
}

RT_TEST(TaskGroup, MayBeUsedAgainAfterWait) {
  TaskGroup group;
  group.go([] { throw 1; });
  EXPECT_THROW(group.wait(), int);
  std::atomic<int> ran{0};
  group.go([&](const Context& context) {
    EXPECT_FALSE(context.cancelled());
    ++ran;
  });
  group.wait();
  EXPECT_EQ(ran, 1);
}

RT_TEST(TaskGroup, ItsGoroutinesMayStartMore) {
  TaskGroup group;
  std::atomic<int> ran{0};
  for (int i = 0; i < 5; ++i) {
    group.go([&] {
      for (int k = 0; k < 5; ++k) group.go([&] { ++ran; });
    });
  }
  group.wait();
  EXPECT_EQ(ran, 25);
}

RT_TEST(TaskGroup, NoMoreThanTheLimitRunAtATime) {
  TaskGroup group;
  group.set_limit(3);
  std::atomic<int> running{0}, most{0};
  for (int i = 0; i < support::scaled(500); ++i) {
    group.go([&] {
      int now = ++running;
      int seen = most;
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      yield();
      --running;
    });
  }
  group.wait();
  EXPECT_LE(most, 3);
  EXPECT_GE(most, 1);
}

RT_TEST(TaskGroup, TryGoDoesNotWaitForASlot) {
  TaskGroup group;
  group.set_limit(2);
  Chan<void> gate;
  EXPECT_TRUE(group.try_go([gate] { gate.recv(); }));
  EXPECT_TRUE(group.try_go([gate] { gate.recv(); }));
  EXPECT_FALSE(group.try_go([] { ADD_FAILURE() << "ran"; }));
  EXPECT_THROW(group.set_limit(5), std::logic_error);
  gate.close();
  group.wait();
  group.set_limit(0);
  EXPECT_TRUE(group.try_go([] {}));
  group.wait();
}

RT_TEST(TaskGroup, ItsDestructorCancelsAndWaits) {
  std::atomic<bool> ended{false};
  {
    TaskGroup group;
    group.go([&](const Context& context) {
      context.done().recv();
      ended = true;
      throw 1;  // lost
    });
  }
  EXPECT_TRUE(ended);
}

RT_TEST(TaskGroup, TakesMoveOnlyFunctions) {
  TaskGroup group;
  std::atomic<int> sum{0};
  group.go([&, mine = std::make_unique<int>(5)] { sum += *mine; });
  group.wait();
  EXPECT_EQ(sum, 5);
}

}  // namespace
}  // namespace magpie
