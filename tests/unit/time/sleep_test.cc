#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using support::eventually;

RT_TEST(Sleep, NeverEndsEarly) {
  WaitGroup all;
  for (int i = 0; i < 20; ++i) {
    all.go([i] {
      for (int k = 1; k <= 10; ++k) {
        auto duration = std::chrono::microseconds((i * 97 + k * 61) % 2000);
        auto start = steady_clock::now();
        sleep_for(duration);
        EXPECT_GE(steady_clock::now() - start, duration);
      }
    });
  }
  all.wait();
}

RT_TEST(Sleep, OfAFractionOfANanosecondOrLessIsNoError) {
  sleep_for(std::chrono::duration<double, std::nano>(0.1));
  sleep_for(0s);
  sleep_for(-1s);
  sleep_for(std::chrono::hours::min());
  sleep_for(std::chrono::duration<double>(-1e300));
  sleep_until(steady_clock::time_point::min());
  sleep_until(steady_clock::now() - 1h);
}

RT_TEST(Sleep, UntilATimePointEndsThere) {
  auto then = steady_clock::now() + 3ms;
  sleep_until(then);
  EXPECT_GE(steady_clock::now(), then);
}

TEST(Sleep, TooLongToCountNeverEnds) {
  std::atomic<int> asleep{0}, awake{0};
  run(Options{.procs = 2}, [&] {
    auto start = [&](auto duration) {
      go([&, duration] {
        ++asleep;
        sleep_for(duration);
        ++awake;
      });
    };
    start(std::chrono::hours::max());
    start(std::chrono::nanoseconds::max());
    start(std::chrono::duration<double>(1e300));
    go([&] {
      ++asleep;
      sleep_until(steady_clock::time_point::max());
      ++awake;
    });
    EXPECT_TRUE(eventually([&] { return asleep == 4 && stats().waiting == 4; }));
    sleep_for(5ms);
    EXPECT_EQ(awake, 0);
  });
}

// Goroutines that sleep until random times, the first of which is `ahead` from now; when they woke,
// in order. None: not all of them slept before the first was due.
std::optional<std::vector<steady_clock::time_point>> order_of_waking(
    std::chrono::milliseconds ahead) {
  constexpr int kSleepers = 200;
  std::vector<steady_clock::time_point> woken;
  bool all_slept = false;
  Mutex mutex;  // at one proc too: whose P is taken runs on for a moment beside the next
  run(Options{.procs = 1, .preempt = false}, [&] {
    std::mt19937 random(static_cast<unsigned>(support::printed_seed()));
    auto base = steady_clock::now() + ahead;
    WaitGroup all;
    for (int i = 0; i < kSleepers; ++i) {
      auto then = base + std::chrono::microseconds(random() % 1000);
      all.go([&, then] {
        sleep_until(then);
        std::lock_guard hold(mutex);
        woken.push_back(then);
      });
    }
    while (steady_clock::now() < base && stats().timers != kSleepers) yield();
    all_slept = steady_clock::now() < base;
    all.wait();
  });
  return all_slept ? std::optional(woken) : std::nullopt;
}

TEST(Sleep, AtOneProcSleepersWakeInTheOrderOfTheirTimes) {
  for (int ahead = 20; ahead < 100'000; ahead *= 4) {
    auto woken = order_of_waking(std::chrono::milliseconds(ahead));
    if (!woken) continue;  // the machine is busy
    EXPECT_TRUE(std::is_sorted(woken->begin(), woken->end()));
    return;
  }
  FAIL() << "they never slept in time";
}

RT_TEST(Sleep, EndsWhileOtherGoroutinesOnlyYield) {
  std::atomic<bool> stop{false};
  WaitGroup all;
  for (int i = 0; i < 2 * procs(); ++i) {
    all.go([&] {
      while (!stop) yield();
    });
  }
  for (int i = 0; i < 5; ++i) sleep_for(1ms);
  stop = true;
  all.wait();
}

// Main's timer is in the set of the P on which the other goroutine then runs, without ever entering
// the runtime.
TEST(Sleep, EndsAlthoughItsProcIsBusy) {
  run(Options{.procs = 2}, [] {
    for (int round = 0; round < 20; ++round) {
      std::atomic<bool> stop{false};
      WaitGroup busy;
      busy.go([&] {
        while (!stop) {
        }
      });
      sleep_for(1ms);
      stop = true;
      busy.wait();
    }
  });
}

TEST(Sleep, EndsAlthoughItsProcIsNoLongerInUse) {
  run(Options{.procs = 8}, [] {
    std::atomic<int> woken{0};
    WaitGroup all;
    for (int i = 0; i < 200; ++i) {
      all.go([&] {
        for (int k = 0; k < 5; ++k) sleep_for(2ms);
        ++woken;
      });
    }
    for (int n : {1, 8, 2, 5, 1, 3}) {
      set_procs(n);
      sleep_for(1ms);
    }
    all.wait();
    EXPECT_EQ(woken, 200);
  });
}

RT_TEST(Sleep, OfManyGoroutinesEndsForAll) {
  WaitGroup all;
  std::atomic<int> woken{0};
  int count = support::scaled(5000);
  for (int i = 0; i < count; ++i) {
    all.go([&, i] {
      sleep_for(std::chrono::microseconds(i % 5000));
      ++woken;
    });
  }
  all.wait();
  EXPECT_EQ(woken, count);
}

RT_TEST(Sleep, IsNoDeadlock) {
  WaitGroup done;
  done.go([] { sleep_for(30ms); });
  done.wait();  // nothing runs meanwhile
}

TEST(Sleep, OnAPlainThreadBlocksTheThread) {
  auto start = steady_clock::now();
  sleep_for(2ms);
  EXPECT_GE(steady_clock::now() - start, 2ms);
}

RT_TEST(Sleep, CountsTheTimersThatFired) {
  std::uint64_t before = stats().total.timers_fired;
  for (int i = 0; i < 3; ++i) sleep_for(100us);
  EXPECT_GE(stats().total.timers_fired, before + 3);
}

TEST(Sleep, OfADroppedGoroutineLeavesNothingBehind) {
  for (int round = 0; round < 3; ++round) {
    run(Options{.procs = 2}, [] {
      for (int i = 0; i < 100; ++i) go([] { sleep_for(1h); });
      EXPECT_TRUE(eventually([] { return stats().timers == 100; }));
    });
  }
}

}  // namespace
}  // namespace magpie
