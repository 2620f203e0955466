// wait_group_test.cc: waiting until a number of things are done.

#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "support/captured_stderr.h"
#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/sleeping_thread.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using support::eventually;
using support::PlainThread;
using support::SleepingThread;

RT_TEST(WaitGroup, WaitingForNothingReturnsAtOnce) {
  WaitGroup group;
  group.wait();
  group.add(2);
  group.add(-2);
  group.wait();
}

RT_TEST(WaitGroup, WaitReturnsOnceEveryGoroutineIsDone) {
  WaitGroup group;
  std::vector<int> results(1000);  // plain: done() and wait() order it
  group.add(1000);
  for (std::size_t i = 0; i < 1000; ++i) {
    go([&group, &results, i] {
      results[i] = 1;
      group.done();
    });
  }
  group.wait();
  for (int result : results) EXPECT_EQ(result, 1);
}

RT_TEST(WaitGroup, WaitDoesNotReturnBeforeTheLastIsDone) {
  WaitGroup group;
  group.add(2);
  std::atomic<bool> returned{false};
  auto waiter = spawn([&] {
    group.wait();
    returned = true;
  });
  group.done();
  for (int i = 0; i < 200; ++i) yield();
  EXPECT_FALSE(returned);
  group.done();
  waiter.join();
  EXPECT_TRUE(returned);
}

RT_TEST(WaitGroup, GoCountsTheGoroutineUntilItHasReturned) {
  WaitGroup group;
  std::atomic<int> ended{0};
  for (int i = 0; i < 100; ++i) {
    group.go([&ended] {
      yield();
      ended.fetch_add(1);
    });
  }
  group.wait();
  EXPECT_EQ(ended, 100);
}

RT_TEST(WaitGroup, WhatTheFunctionOfGoCapturedIsDestroyedWhenWaitReturns) {
  struct SlowToEnd {
    explicit SlowToEnd(std::atomic<bool>& is) : alive(&is) { is = true; }
    SlowToEnd(SlowToEnd&& other) noexcept : alive(std::exchange(other.alive, nullptr)) {}
    ~SlowToEnd() {
      if (alive == nullptr) return;
      for (int i = 0; i < 10; ++i) yield();
      *alive = false;
    }
    std::atomic<bool>* alive;
  };
  for (int i = 0; i < 50; ++i) {
    std::atomic<bool> alive{false};
    WaitGroup group;
    group.go([mine = SlowToEnd(alive)] {});
    group.wait();
    EXPECT_FALSE(alive);
  }
}

RT_TEST(WaitGroup, GoroutinesMayAddMoreBeforeTheyAreDone) {
  WaitGroup group;
  std::atomic<int> leaves{0};
  struct Tree {
    static void grow(WaitGroup& group, std::atomic<int>& leaves, int depth) {
      if (depth == 0) {
        leaves.fetch_add(1);
        return;
      }
      for (int i = 0; i < 2; ++i) {
        group.go([&group, &leaves, depth] { grow(group, leaves, depth - 1); });
      }
    }
  };
  group.go([&] { Tree::grow(group, leaves, 10); });
  group.wait();
  EXPECT_EQ(leaves, 1024);
}

RT_TEST(WaitGroup, EveryWaiterIsWoken) {
  WaitGroup gate, woken;
  gate.add(1);
  for (int i = 0; i < 200; ++i) woken.go([&gate] { gate.wait(); });
  ASSERT_TRUE(eventually([] { return stats().waiting == 200; }));
  gate.done();
  woken.wait();
}

RT_TEST(WaitGroup, AGroupMayBeUsedAgain) {
  WaitGroup group;
  for (int round = 0; round < 500; ++round) {
    int done = 0;
    group.add(1);
    go([&] {
      done = 1;
      group.done();
    });
    group.wait();
    ASSERT_EQ(done, 1);
  }
}

RT_TEST(WaitGroup, AGroupMayBeDestroyedRightAfterWait) {
  for (int round = 0; round < support::scaled(2000); ++round) {
    auto group = std::make_unique<WaitGroup>();
    group->add(2);
    go([raw = group.get()] { raw->done(); });
    go([raw = group.get()] { raw->done(); });
    group->wait();
    group.reset();
  }
}

RT_TEST(WaitGroup, ACountBelowZeroThrowsAndChangesNothing) {
  WaitGroup group;
  EXPECT_THROW(group.done(), std::logic_error);
  group.add(3);
  EXPECT_THROW(group.add(-4), std::logic_error);
  EXPECT_THROW(group.add(std::numeric_limits<std::int64_t>::min()), std::logic_error);
  group.add(-3);  // still three
  group.wait();
}

RT_TEST(WaitGroup, ACountAboveTheLimitThrowsAndChangesNothing) {
  WaitGroup group;
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
  group.add(kMost);
  EXPECT_THROW(group.add(1), std::logic_error);
  EXPECT_THROW(group.add(std::numeric_limits<std::int64_t>::max()), std::logic_error);
  group.add(-kMost);
  group.wait();
}

RT_TEST(WaitGroup, PlainThreadsMayBeDone) {
  WaitGroup group;
  group.add(3);
  std::optional<PlainThread> threads[3];
  for (auto& thread : threads) thread.emplace([&group] { group.done(); });
  group.wait();
}

RT_TEST(WaitGroup, PlainThreadsMayWait) {
  WaitGroup group;
  group.add(1);
  std::atomic<int> returned{0};
  std::optional<PlainThread> threads[3];
  for (auto& thread : threads) {
    thread.emplace([&] {
      group.wait();
      returned.fetch_add(1);
    });
  }
  EXPECT_EQ(returned, 0);
  group.done();
  for (auto& thread : threads) thread->join();
  EXPECT_EQ(returned, 3);
}

RT_TEST(WaitGroup, GoroutinesAndPlainThreadsMayWaitTogether) {
  for (int round = 0; round < 20; ++round) {
    WaitGroup gate, woken;
    gate.add(1);
    for (int i = 0; i < 10; ++i) woken.go([&gate] { gate.wait(); });
    PlainThread thread([&gate] { gate.wait(); });
    yield();
    gate.done();
    woken.wait();
    thread.join();
  }
}

RT_TEST(WaitGroup, NobodySeesACountThatIsRefused) {
  WaitGroup group;
  std::atomic<bool> over{false};
  auto wrong = spawn([&] {
    while (!over) {
      EXPECT_THROW(group.done(), std::logic_error);
      yield();
    }
  });
  PlainThread thread([&] {
    for (int i = 0; i < support::scaled(20'000); ++i) group.wait();  // would block at -1
    over = true;
  });
  wrong.join();
}

RT_TEST(WaitGroup, AGroupMayBeUsedAgainWhileOtherWaitersHaveYetToReturn) {
  for (int round = 0; round < support::scaled(2000); ++round) {
    WaitGroup group, all;
    group.add(1);
    for (int i = 0; i < 3; ++i) {
      all.go([&] { group.wait(); });
    }
    std::atomic<bool> second{false};
    all.go([&] {
      group.wait();
      group.add(1);
      all.go([&] {
        second = true;
        group.done();
      });
      group.wait();
      EXPECT_TRUE(second);
    });
    yield();
    group.done();
    all.wait();
  }
}

// Goroutines that wait when run() ends are dropped, and their stacks unmapped; the group lives on.
void leave_ten_waiting(WaitGroup& group) {
  run([&] {
    for (int i = 0; i < 10; ++i) go([&group] { group.wait(); });
    ASSERT_TRUE(eventually([] { return stats().waiting == 10; }));
  });
}

TEST(WaitGroupAfterRun, APlainThreadMayBeDone) {
  WaitGroup group;
  group.add(1);
  leave_ten_waiting(group);
  group.done();
  group.wait();
}

TEST(WaitGroupAfterRun, ThreadsThatWaitBesideDroppedGoroutinesAreWoken) {
  WaitGroup group;
  group.add(1);
  std::optional<std::thread> threads[2];
  threads[0].emplace([&] { group.wait(); });
  leave_ten_waiting(group);
  threads[1].emplace([&] { group.wait(); });
  group.done();
  for (auto& thread : threads) thread->join();
}

TEST(WaitGroupAfterRun, SaysNothingOfGoroutinesThatWereDone) {
  WaitGroup group;
  magpie::run([&] {
    group.go([] {});
    group.wait();
  });
  support::CapturedStderr captured;
  group.add(1);
  {
    support::SleepingThread waiter([&] { group.wait(); });
    group.done();
    EXPECT_TRUE(waiter.goes_on());
  }
  EXPECT_EQ(captured.end(), "");
}

// How often stderr, which gtest captures into a file, has said so by now.
int times_said(std::string_view words) {
  std::ifstream file("/proc/self/fd/2");
  std::string said(std::istreambuf_iterator<char>(file), {});
  int times = 0;
  for (auto at = said.find(words); at != std::string::npos; at = said.find(words, at + 1)) ++times;
  return times;
}

TEST(WaitGroupAfterRun, WaitSaysThatItWaitsForGoroutinesThatWereDropped) {
  constexpr auto kWords = "waits for goroutines that were dropped when their run() ended";
  WaitGroup group;
  support::CapturedStderr captured;
  std::optional<SleepingThread> thread;
  run([&] {
    group.go([] { sleep_for(std::chrono::hours(1)); });
    thread.emplace([&] { group.wait(); });
  });
  EXPECT_TRUE(eventually([&] { return times_said(kWords) == 1; }));
  SleepingThread later([&] { group.wait(); });
  EXPECT_TRUE(eventually([&] { return times_said(kWords) == 2; }));
  group.done();  // in its place
  EXPECT_TRUE(thread->goes_on());
  EXPECT_TRUE(later.goes_on());
}

TEST(WaitGroupAfterRun, GoroutinesOfTheNextRunMayUseTheGroup) {
  WaitGroup group;
  group.add(1);
  leave_ten_waiting(group);
  run([&] {
    auto waiter = spawn([&] { group.wait(); });
    yield();
    group.done();
    waiter.join();
  });
}

TEST(WaitGroupWithoutARuntime, PlainThreadsMayUseItAmongThemselves) {
  WaitGroup group;
  int written = 0;
  group.add(1);
  std::thread other([&] {
    written = 7;
    group.done();
  });
  group.wait();
  EXPECT_EQ(written, 7);
  other.join();
}

TEST(WaitGroupWithoutARuntime, GoThrowsAndLeavesTheCount) {
  WaitGroup group;
  EXPECT_THROW(group.go([] {}), std::logic_error);
  group.wait();
}

}  // namespace
}  // namespace magpie
