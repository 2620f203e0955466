// outside_test.cc: plain threads use the runtime while it works, begins and ends.

#include <magpie/magpie.h>

#include <array>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/random.h"
#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using support::PlainThread;
using support::scaled;

RT_TEST(StressOutside, PlainThreadsStartJoinAndSignalWhileGoroutinesWork) {
  constexpr int kThreads = 3;
  const int rounds = scaled(10'000);
  WaitGroup signals, started;
  signals.add(kThreads * rounds);
  std::atomic<long> ran{0};
  std::atomic<bool> over{false};
  WaitGroup busy;
  for (int i = 0; i < 8; ++i) {
    busy.go([&over] {
      while (!over.load(std::memory_order_relaxed)) {
        spawn([] { yield(); }).join();
        yield();
      }
    });
  }
  {
    std::vector<std::unique_ptr<PlainThread>> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.push_back(std::make_unique<PlainThread>([&, i] {
        for (int round = 0; round < rounds; ++round) {
          signals.done();
          started.go([&ran] { ran.fetch_add(1); });
          auto handle = spawn([&ran, round] {
            ran.fetch_add(1);
            return round;
          });
          if ((round + i) % 3 == 0) {
            handle.detach();
          } else {
            ASSERT_EQ(handle.join(), round);
          }
        }
      }));
    }
    signals.wait();
  }
  started.wait();
  over = true;
  busy.wait();
  EXPECT_TRUE(support::eventually([&] { return ran == 2L * kThreads * rounds; }));
}

// Each go() either starts its goroutine, or throws because no runtime runs. Nothing leaks and
// nothing is torn down too early.
TEST(StressOutside, PlainThreadsMayStartGoroutinesWhileRunBeginsAndEnds) {
  constexpr int kThreads = 3;
  std::atomic<bool> over{false};
  auto held = std::make_shared<int>(7);
  std::atomic<long> accepted{0}, refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      std::array<char, 200> large{};
      while (!over.load(std::memory_order_relaxed)) {
        try {
          if (i == 0) {
            go([held] { (void)*held; });
          } else if (i == 1) {
            go([held, large] { (void)large; });
          } else {
            spawn([held] { return held; }).detach();
          }
          accepted.fetch_add(1, std::memory_order_relaxed);
        } catch (const std::logic_error&) {
          refused.fetch_add(1, std::memory_order_relaxed);
          std::this_thread::yield();
        }
      }
    });
  }
  // Until both have been seen.
  for (int round = 0; round < scaled(1000) || accepted == 0 || refused == 0; ++round) {
    run(Options{.procs = 1 + round % 3}, [] {
      for (int i = 0; i < 5; ++i) yield();
    });
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(held.use_count(), 1);
}

TEST(StressOutside, PlainThreadsMayJoinAndAskWhileRunBeginsAndEnds) {
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&over] {
      while (!over.load(std::memory_order_relaxed)) {
        try {
          auto handle = spawn([] {
            yield();
            return 7;
          });
          EXPECT_EQ(handle.join(), 7);
        } catch (const std::logic_error&) {
          std::this_thread::yield();
        }
      }
    });
  }
  threads.emplace_back([&over] {
    while (!over.load(std::memory_order_relaxed)) {
      EXPECT_LE(stats().procs.size(), 3u);
      (void)num_goroutines();
      (void)num_threads();
      (void)procs();
      std::this_thread::yield();
    }
  });
  for (int round = 0; round < scaled(1000); ++round) {
    run(Options{.procs = 1 + round % 3}, [] {
      for (int i = 0; i < 5; ++i) yield();
    });
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace magpie
