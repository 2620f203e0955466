// semaphore_test.cc: a number of units that goroutines take and give back.

#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/sleeping_thread.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::eventually;
using support::PlainThread;
using support::SleepingThread;
using support::waiting_is;

RT_TEST(Semaphore, UnitsAreTakenAndGivenBack) {
  Semaphore semaphore(3);
  semaphore.acquire();
  semaphore.acquire(2);
  EXPECT_FALSE(semaphore.try_acquire());
  semaphore.release(2);
  EXPECT_FALSE(semaphore.try_acquire(3));
  EXPECT_TRUE(semaphore.try_acquire(2));
}

RT_TEST(Semaphore, NoUnitsAreAlwaysThere) {
  Semaphore semaphore(0);
  semaphore.acquire(0);
  EXPECT_TRUE(semaphore.try_acquire(0));
  semaphore.release(0);
  EXPECT_FALSE(semaphore.try_acquire());
}

RT_TEST(Semaphore, AtMostSoManyAreInside) {
  constexpr int kLimit = 3;
  Semaphore semaphore(kLimit);
  std::atomic<int> inside{0}, most{0};
  WaitGroup all;
  for (int i = 0; i < 12; ++i) {
    all.go([&] {
      for (int n = 0; n < support::scaled(500); ++n) {
        semaphore.acquire();
        int now = ++inside;
        EXPECT_LE(now, kLimit);
        for (int before = most; before < now && !most.compare_exchange_weak(before, now);) {
        }
        yield();
        --inside;
        semaphore.release();
      }
    });
  }
  all.wait();
  EXPECT_EQ(most, kLimit);
  EXPECT_TRUE(semaphore.try_acquire(kLimit));
  EXPECT_FALSE(semaphore.try_acquire());
}

RT_TEST(Semaphore, ALargeRequestIsNotOvertakenBySmallOnes) {
  Semaphore semaphore(2);
  std::string order;
  auto large = spawn([&] {
    semaphore.acquire(5);
    order += 'L';
    semaphore.release(5);
  });
  ASSERT_TRUE(waiting_is(1));
  EXPECT_FALSE(semaphore.try_acquire());  // there are two, but somebody waits
  auto small = spawn([&] {
    semaphore.acquire();
    order += 's';
  });
  ASSERT_TRUE(waiting_is(2));
  semaphore.release(3);
  large.join();
  small.join();
  EXPECT_EQ(order, "Ls");
  EXPECT_TRUE(semaphore.try_acquire(4));
}

RT_TEST(Semaphore, WaitersAreServedInTheOrderTheyCame) {
  Semaphore semaphore(0);
  std::string order;
  WaitGroup all;
  for (char name : {'a', 'b', 'c', 'd'}) {
    all.go([&, name] {
      semaphore.acquire();
      order += name;
      semaphore.release();  // the next one, after this has been written
    });
    ASSERT_TRUE(waiting_is(static_cast<std::size_t>(name - 'a') + 1));
  }
  semaphore.release();
  all.wait();
  EXPECT_EQ(order, "abcd");
}

RT_TEST(Semaphore, OneReleaseMayServeSeveral) {
  Semaphore semaphore(0);
  WaitGroup all;
  for (int i = 0; i < 5; ++i) all.go([&] { semaphore.acquire(2); });
  ASSERT_TRUE(waiting_is(5));
  semaphore.release(11);
  all.wait();
  EXPECT_TRUE(semaphore.try_acquire());
  EXPECT_FALSE(semaphore.try_acquire());
}

RT_TEST(Semaphore, AWaiterWithATimeLimitGivesUpAndTakesNothing) {
  Semaphore semaphore(1);
  auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(semaphore.try_acquire_for(2ms, 2));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 2ms);
  EXPECT_FALSE(semaphore.try_acquire_until(std::chrono::steady_clock::now() - 1s, 2));
  EXPECT_TRUE(semaphore.try_acquire_for(0s));
  auto waiter = spawn([&] { return semaphore.try_acquire_for(60s); });
  ASSERT_TRUE(waiting_is(1));
  semaphore.release();
  EXPECT_TRUE(waiter.join());
}

RT_TEST(Semaphore, ThoseBehindALargeRequestThatGaveUpAreServed) {
  Semaphore semaphore(1);
  std::atomic<bool> gave_up{false};
  auto large = spawn([&] {
    EXPECT_FALSE(semaphore.try_acquire_for(10ms, 10));
    gave_up = true;
  });
  ASSERT_TRUE(eventually([&] { return stats().waiting == 1 || gave_up; }));
  semaphore.acquire();  // behind it, although there is one
  large.join();
}

RT_TEST(Semaphore, TimeLimitsAndReleasesMayMeet) {
  Semaphore semaphore(2);
  WaitGroup all;
  for (int i = 0; i < 6; ++i) {
    all.go([&, i] {
      for (int n = 0; n < support::scaled(300); ++n) {
        if (semaphore.try_acquire_for(std::chrono::microseconds(n % 40), 1 + i % 2)) {
          if (n % 4 == 0) sleep_for(10us);
          semaphore.release(1 + i % 2);
        }
      }
    });
  }
  all.wait();
  EXPECT_TRUE(semaphore.try_acquire(2));
  EXPECT_FALSE(semaphore.try_acquire());
}

RT_TEST(Semaphore, MisuseThrowsAndChangesNothing) {
  EXPECT_THROW(Semaphore(-1), std::logic_error);
  Semaphore semaphore(Semaphore::max());
  EXPECT_THROW(semaphore.release(), std::logic_error);
  EXPECT_THROW(semaphore.release(-1), std::logic_error);
  EXPECT_THROW(semaphore.acquire(-1), std::logic_error);
  EXPECT_THROW((void)semaphore.try_acquire(std::numeric_limits<std::int64_t>::max()),
               std::logic_error);
  EXPECT_TRUE(semaphore.try_acquire(Semaphore::max()));
  EXPECT_FALSE(semaphore.try_acquire());
}

RT_TEST(Semaphore, ItMayBeDestroyedByTheOneThatGotTheUnit) {
  for (int round = 0; round < support::scaled(2000); ++round) {
    auto semaphore = std::make_unique<Semaphore>(0);
    auto other = spawn([raw = semaphore.get()] { raw->release(); });
    semaphore->acquire();
    semaphore.reset();
    other.join();
  }
}

RT_TEST(Semaphore, PlainThreadsAndGoroutinesShareIt) {
  Semaphore semaphore(2);
  std::atomic<int> inside{0};
  auto use = [&] {
    for (int n = 0; n < 300; ++n) {
      semaphore.acquire();
      EXPECT_LE(++inside, 2);
      --inside;
      semaphore.release();
    }
  };
  std::optional<PlainThread> threads[2];
  for (auto& thread : threads) thread.emplace(use);
  WaitGroup all;
  for (int i = 0; i < 4; ++i) all.go(use);
  all.wait();
}

TEST(SemaphoreWithoutARuntime, PlainThreadsUseItAmongThemselves) {
  Semaphore semaphore(0);
  std::thread other([&] { semaphore.acquire(3); });
  EXPECT_FALSE(semaphore.try_acquire_for(1ms));
  for (int i = 0; i < 3; ++i) semaphore.release();
  other.join();
}

TEST(SemaphoreAfterRun, UnitsAreNotKeptForWaitersThatWereDropped) {
  Semaphore semaphore(1);
  auto leave_waiting = [&] {
    run([&] {
      for (int i = 0; i < 3; ++i) go([&] { semaphore.acquire(10); });
      ASSERT_TRUE(waiting_is(3));
    });
  };
  leave_waiting();
  EXPECT_TRUE(semaphore.try_acquire());
  leave_waiting();
  semaphore.release();
  semaphore.acquire();
  leave_waiting();
  std::thread thread([&] { semaphore.acquire(); });
  semaphore.release();
  thread.join();
}

TEST(SemaphoreAfterRun, AThreadBehindALargeRequestThatWasDroppedIsServed) {
  Semaphore semaphore(1);
  std::optional<SleepingThread> thread;
  run([&] {
    go([&] { semaphore.acquire(2); });
    ASSERT_TRUE(waiting_is(1));
    thread.emplace([&] { semaphore.acquire(); });
  });
  EXPECT_TRUE(thread->goes_on());
}

// With one proc a goroutine that main wakes hardly ever runs before main returns; if it does there
// is nothing to see.
TEST(SemaphoreAfterRun, UnitsOfAGoroutineThatWasServedAndDroppedAreThereAgain) {
  Semaphore semaphore(0);
  std::optional<SleepingThread> thread;
  auto serve_and_drop = [&](bool with_thread) {
    run(Options{.procs = 1}, [&] {
      go([&] {
        semaphore.acquire();
        semaphore.release();
      });
      ASSERT_TRUE(waiting_is(1));
      if (with_thread) thread.emplace([&] { semaphore.acquire(); });
      semaphore.release();
    });
  };
  serve_and_drop(true);
  EXPECT_TRUE(thread->goes_on());  // and keeps the unit
  serve_and_drop(false);
  EXPECT_TRUE(semaphore.try_acquire());
  EXPECT_FALSE(semaphore.try_acquire());
}

// The time of a thread is up when the goroutines around it in line have been dropped.
TEST(SemaphoreAfterRun, AThreadWhoseTimeIsUpDoesNotTouchDroppedNeighbours) {
  Semaphore semaphore(0);
  std::thread thread;
  run([&] {
    auto start_two = [&](std::size_t so_far) {
      for (int i = 0; i < 2; ++i) go([&] { semaphore.acquire(); });
      ASSERT_TRUE(waiting_is(so_far + 2));
    };
    start_two(0);
    thread = std::thread([&] { EXPECT_FALSE(semaphore.try_acquire_for(20ms)); });
    sleep_for(2ms);
    start_two(2);
  });
  thread.join();
}

}  // namespace
}  // namespace magpie
