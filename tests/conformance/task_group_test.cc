// task_group_test.cc: goroutines that are waited for together.

#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/may_leak.h"
#include "support/rt_test.h"
#include "support/sleeping_thread.h"
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

RT_TEST(TaskGroup, TheLargestNumberIsALimit) {
  TaskGroup group;
  group.set_limit(std::numeric_limits<std::int64_t>::max());
  std::atomic<int> ended{0};
  for (int i = 0; i < 3; ++i) group.go([&] { ++ended; });
  group.wait();
  EXPECT_EQ(ended, 3);
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

RT_TEST(TaskGroup, ItsDestructorCancelsItsContextAlsoWhenNobodyRuns) {
  Context unused = Context::background();
  {
    TaskGroup group;
    unused = group.context();
  }
  EXPECT_TRUE(unused.cancelled());

  Context ended = Context::background();
  {
    TaskGroup group;
    ended = group.context();
    group.go([] {});
    EXPECT_TRUE(eventually([] { return num_goroutines() == 1; }));
  }
  EXPECT_TRUE(ended.cancelled());
}

// It takes a while to go away: whoever does not wait for that sees it.
class SlowToEnd {
 public:
  explicit SlowToEnd(std::atomic<int>& alive) : alive_(&alive) { ++alive; }
  SlowToEnd(SlowToEnd&& other) noexcept : alive_(std::exchange(other.alive_, nullptr)) {}
  ~SlowToEnd() {
    if (alive_ == nullptr) return;
    for (int i = 0; i < 10; ++i) yield();
    --*alive_;
  }

 private:
  std::atomic<int>* alive_;
};

RT_TEST(TaskGroup, WhatItsFunctionsCapturedIsDestroyedWhenWaitReturns) {
  for (int i = 0; i < 50; ++i) {
    std::atomic<int> alive{0};
    TaskGroup group;
    group.go([mine = SlowToEnd(alive)] {});
    group.go([mine = SlowToEnd(alive)](const Context&) {});
    group.go([mine = SlowToEnd(alive)] { throw 1; });
    EXPECT_THROW(group.wait(), int);
    EXPECT_EQ(alive, 0);
  }
}

RT_TEST(TaskGroup, ALimitMayBeSetAsSoonAsNobodyRuns) {
  for (int i = 0; i < support::scaled(2000); ++i) {
    TaskGroup group;
    group.set_limit(4);
    for (int k = 0; k < 4; ++k) group.go([] {});
    auto set = [&] {
      try {
        group.set_limit(1);
        return true;
      } catch (const std::logic_error&) {
        return false;
      }
    };
    ASSERT_TRUE(eventually(set));
    Chan<void> gate;
    EXPECT_TRUE(group.try_go([gate] { gate.recv(); }));
    EXPECT_FALSE(group.try_go([] {}));
    gate.close();
    group.wait();
  }
}

TEST(TaskGroupAfterRun, ItsDestructorDoesNotWaitForGoroutinesThatWereDropped) {
  std::optional<TaskGroup> group(std::in_place);
  run([&] { group->go([] { sleep_for(std::chrono::hours(1)); }); });
  group.reset();
}

TEST(TaskGroupAfterRun, WaitSaysThatGoroutinesWereDropped) {
  TaskGroup group;
  group.set_limit(2);
  std::optional<support::SleepingThread> thread;
  run([&] {
    for (int i = 0; i < 2; ++i) group.go([] { sleep_for(std::chrono::hours(1)); });
    thread.emplace([&] { EXPECT_THROW(group.wait(), std::logic_error); });
  });
  EXPECT_TRUE(thread->goes_on());
  group.wait();  // there are none any more
  run([&] { group.go([] { sleep_for(std::chrono::hours(1)); }); });
  EXPECT_THROW(group.wait(), std::logic_error);
}

TEST(TaskGroupAfterRun, ItMayBeUsedInTheNextRun) {
  TaskGroup group;
  group.set_limit(1);
  run([&] { group.go([] { sleep_for(std::chrono::hours(1)); }); });
  run([&] {
    int ran = 0;
    group.go([&] { ++ran; });
    group.wait();
    EXPECT_EQ(ran, 1);
  });
}

TEST(WorkerPoolAfterRun, NobodyWaitsForWorkersThatWereDropped) {
  std::optional<WorkerPool> pool;
  std::atomic<bool> has_begun{false};
  run([&] {
    pool.emplace(2, 2);
    {
      support::MayLeak job;
      pool->submit([&] {
        has_begun = true;
        sleep_for(std::chrono::hours(1));
      });
    }
    EXPECT_TRUE(support::eventually([&] { return has_begun.load(); }));
  });
  EXPECT_THROW(pool->wait(), std::logic_error);
  pool.reset();
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
