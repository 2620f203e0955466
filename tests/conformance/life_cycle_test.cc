// life_cycle_test.cc: run() begins, main returns, the others are dropped, run() may be called
// again.

#include <magpie/magpie.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "support/plain_thread.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using support::eventually;

TEST(Run, ReturnsWhatMainReturns) {
  EXPECT_EQ(run([] { return 7; }), 7);
  EXPECT_EQ(run(Options{.procs = 2}, [] { return std::string("seven"); }), "seven");
  EXPECT_EQ(*run([] { return std::make_unique<int>(7); }), 7);
}

TEST(Run, AnExceptionFromMainLeavesRun) {
  try {
    run(Options{.procs = 2}, [] {
      go([] {
        for (;;) yield();
      });
      yield();
      throw std::runtime_error("out of main");
    });
    ADD_FAILURE() << "run() returned";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "out of main");
  }
  EXPECT_EQ(run([] { return 7; }), 7);
}

TEST(Run, MayBeCalledAHundredTimes) {
  for (int round = 0; round < 100; ++round) {
    const int got = run(Options{.procs = 1 + round % 4}, [round] {
      EXPECT_EQ(goroutine_id(), 1u);
      WaitGroup all;
      for (int i = 0; i < 20; ++i) all.go([] { yield(); });
      all.wait();
      return spawn([round] { return round; }).join();
    });
    ASSERT_EQ(got, round);
  }
}

TEST(Run, MayBeCalledFromAnyThread) {
  std::thread([] { EXPECT_EQ(run([] { return spawn([] { return 7; }).join(); }), 7); }).join();
}

TEST(Run, LeavesNoThreadBehind) {
  run(Options{.procs = 8}, [] {
    WaitGroup all;
    for (int i = 0; i < 1000; ++i) all.go([] { yield(); });
    all.wait();
  });
  EXPECT_EQ(num_threads(), 0);
  EXPECT_EQ(num_goroutines(), 0u);
}

TEST(LeftBehind, AGoroutineThatNeverRanIsDropped) {
  std::atomic<bool> ran{false};
  run(Options{.procs = 1}, [&] { go([&ran] { ran = true; }); });
  EXPECT_FALSE(ran);
}

TEST(LeftBehind, AGoroutineThatWaitsIsDropped) {
  for (const int n : {1, 2, 8}) {
    WaitGroup never;
    never.add(1);
    std::atomic<bool> went_on{false};
    run(Options{.procs = n}, [&] {
      for (int i = 0; i < 100; ++i) {
        go([&] {
          never.wait();
          went_on = true;
        });
      }
      ASSERT_TRUE(eventually([] { return stats().waiting == 100; }));
    });
    EXPECT_FALSE(went_on);
  }
}

TEST(LeftBehind, GoroutinesThatYieldAreDropped) {
  for (const int n : {1, 2, 8}) {
    std::atomic<std::uint64_t> rounds{0};
    run(Options{.procs = n}, [&] {
      for (int i = 0; i < 100; ++i) {
        go([&] {
          for (;;) {
            rounds.fetch_add(1, std::memory_order_relaxed);
            yield();
          }
        });
      }
      ASSERT_TRUE(eventually([&] { return rounds > 1000; }));
    });
    const std::uint64_t at_the_end = rounds;
    std::this_thread::yield();
    EXPECT_EQ(rounds, at_the_end);
  }
}

TEST(LeftBehind, AGoroutineThatComputesIsWaitedForUntilItCallsTheRuntime) {
  std::atomic<bool> computes{false}, computed{false}, went_on{false};
  run(Options{.procs = 2}, [&] {
    go([&] {
      computes = true;
      std::atomic<int> work{0};
      while (work.fetch_add(1, std::memory_order_relaxed) < 5'000'000) {
      }
      computed = true;
      for (;;) yield();
      went_on = true;
    });
    ASSERT_TRUE(eventually([&] { return computes.load(); }));
  });
  EXPECT_TRUE(computed);
  EXPECT_FALSE(went_on);
}

TEST(LeftBehind, GoroutinesBelowAJoinInPlaceAreDropped) {
  for (const int n : {1, 2, 8}) {
    WaitGroup never;
    never.add(1);
    run(Options{.procs = n}, [&] {
      go([&] { spawn([&] { spawn([&] { never.wait(); }).join(); }).join(); });
      ASSERT_TRUE(eventually([] { return stats().waiting == 3; }));
    });
  }
}

TEST(LeftBehind, AGoroutineWithAStackOfItsOwnIsDropped) {
  WaitGroup never;
  never.add(1);
  run(Options{.procs = 2}, [&] {
    go(GoOptions{.name = "waits", .stack_size = 512 * 1024}, [&] { never.wait(); });
    ASSERT_TRUE(eventually([] { return stats().waiting == 1; }));
  });
}

TEST(LeftBehind, TheClosuresOfGoroutinesThatNeverRanAreDestroyed) {
  auto held = std::make_shared<int>(7);
  std::array<char, 500> large{};
  run(Options{.procs = 1, .preempt = false}, [&] {
    go([held] { (void)*held; });
    go([held, large] { (void)large; });
    go(GoOptions{.name = "named", .stack_size = 0}, [held] { (void)*held; });
    spawn([held] { return held; }).detach();
    spawn([held, large] { return large; }).detach();
    for (int i = 0; i < 1000; ++i) go([held] { (void)*held; });  // some in the global queue
    EXPECT_EQ(held.use_count(), 1006);
  });
  EXPECT_EQ(held.use_count(), 1);
}

TEST(LeftBehind, ResultsThatNobodyTookAreDestroyed) {
  auto held = std::make_shared<int>(7);
  JoinHandle<std::shared_ptr<int>> handle;
  run(Options{.procs = 1}, [&] {
    handle = spawn([held] { return held; });
    yield();
    EXPECT_EQ(held.use_count(), 2);  // the result
  });
  EXPECT_EQ(held.use_count(), 1);
}

TEST(LeftBehind, ADroppedClosureMayHoldHandlesOfOtherGoroutines) {
  run(Options{.procs = 1}, [] {
    auto inner = spawn([] { return 7; });
    go([mine = std::move(inner)]() mutable { mine.join(); });
  });
}

TEST(LeftBehind, GoroutinesOfPlainThreadsAreDroppedToo) {
  auto held = std::make_shared<int>(7);
  run(Options{.procs = 1}, [&] {
    std::thread([held] {
      for (int i = 0; i < 10; ++i) go([held] { (void)*held; });
    }).join();
  });
  EXPECT_EQ(held.use_count(), 1);
}

// Copying it tells main to return, and takes its time.
struct SlowToCopy {
  std::atomic<bool>* main_may_return;
  std::shared_ptr<int> held;

  SlowToCopy(std::atomic<bool>* flag, std::shared_ptr<int> value)
      : main_may_return(flag), held(std::move(value)) {}
  SlowToCopy(const SlowToCopy& other) : main_may_return(other.main_may_return), held(other.held) {
    *main_may_return = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  void operator()() const {}
};

TEST(LeftBehind, RunDoesNotEndUnderAPlainThreadThatIsStartingAGoroutine) {
  for (const bool joinable : {false, true}) {
    auto held = std::make_shared<int>(7);
    std::atomic<bool> main_may_return{false};
    std::optional<std::thread> thread;
    run(Options{.procs = 1}, [&] {
      thread.emplace([&] {
        const SlowToCopy slow(&main_may_return, held);
        if (joinable) {
          spawn(slow).detach();
        } else {
          go(slow);
        }
      });
      ASSERT_TRUE(eventually([&] { return main_may_return.load(); }));
    });
    thread->join();
    EXPECT_EQ(held.use_count(), 1);
  }
}

TEST(WithoutARuntime, GoAndSpawnThrow) {
  EXPECT_THROW(go([] {}), std::logic_error);
  EXPECT_THROW((void)spawn([] {}), std::logic_error);
  run([] {});
  EXPECT_THROW(go([] {}), std::logic_error);
}

}  // namespace
}  // namespace magpie
