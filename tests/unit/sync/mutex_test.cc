// mutex_test.cc: one at a time.

#include <magpie/magpie.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

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

constinit Mutex static_mutex;  // needs no constructor at run time

static_assert(sizeof(Mutex) <= 72);  // a cache line, and what tells dumps who holds it

RT_TEST(Mutex, OnlyOneHoldsIt) {
  Mutex mutex;
  int inside = 0, count = 0;  // plain: the mutex orders them
  WaitGroup all;
  for (int i = 0; i < 8; ++i) {
    all.go([&] {
      for (int n = 0; n < support::scaled(2000); ++n) {
        std::lock_guard hold(mutex);
        EXPECT_EQ(++inside, 1);
        if (n % 16 == 0) yield();
        ++count;
        --inside;
      }
    });
  }
  all.wait();
  EXPECT_EQ(count, 8 * support::scaled(2000));
}

RT_TEST(Mutex, TryLockFailsWhileSomebodyHoldsIt) {
  Mutex mutex;
  EXPECT_TRUE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock());
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

RT_TEST(Mutex, TheStandardsLocksWorkWithIt) {
  Mutex a, b;
  { std::scoped_lock both(a, b); }
  std::unique_lock lazy(a, std::defer_lock);
  EXPECT_FALSE(lazy.owns_lock());
  lazy.lock();
  EXPECT_FALSE(a.try_lock());
  lazy.unlock();
  EXPECT_TRUE(lazy.try_lock_for(1s));
}

RT_TEST(Mutex, AnotherGoroutineMayUnlockIt) {
  static_mutex.lock();
  spawn([] { static_mutex.unlock(); }).join();
  EXPECT_TRUE(static_mutex.try_lock());
  static_mutex.unlock();
}

RT_TEST(Mutex, WhoeverWaitsGetsItInTheEnd) {
  Mutex mutex;
  mutex.lock();
  WaitGroup all;
  int count = 0;
  for (int i = 0; i < 100; ++i) {
    all.go([&] {
      std::lock_guard hold(mutex);
      ++count;
    });
  }
  ASSERT_TRUE(waiting_is(100));
  mutex.unlock();
  all.wait();
  EXPECT_EQ(count, 100);
}

RT_TEST(Mutex, WaitersThatHaveWaitedAMillisecondAreServedInTheOrderTheyCame) {
  Mutex mutex;
  mutex.lock();
  std::vector<int> order;
  WaitGroup all;
  for (int i = 0; i < 20; ++i) {
    all.go([&, i] {
      std::lock_guard hold(mutex);
      order.push_back(i);
    });
    ASSERT_TRUE(waiting_is(static_cast<std::size_t>(i) + 1));
  }
  sleep_for(2ms);
  mutex.unlock();
  all.wait();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

RT_TEST(Mutex, AWaiterWithATimeLimitGivesUp) {
  Mutex mutex;
  mutex.lock();
  auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(mutex.try_lock_for(2ms));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 2ms);
  EXPECT_FALSE(mutex.try_lock_until(std::chrono::steady_clock::now() - 1s));
  EXPECT_FALSE(mutex.try_lock_for(-1s));
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock_for(-1s));  // nobody holds it
  mutex.unlock();
}

RT_TEST(Mutex, AWaiterWithATimeLimitGetsItIfItIsUnlockedInTime) {
  Mutex mutex;
  mutex.lock();
  auto waiter = spawn([&] {
    bool got = mutex.try_lock_for(60s);
    if (got) mutex.unlock();
    return got;
  });
  ASSERT_TRUE(waiting_is(1));
  mutex.unlock();
  EXPECT_TRUE(waiter.join());
}

RT_TEST(Mutex, ThoseBehindOneThatGaveUpAreServed) {
  Mutex mutex;
  mutex.lock();
  std::atomic<bool> gave_up{false};
  auto impatient = spawn([&] {
    EXPECT_FALSE(mutex.try_lock_for(10ms));
    gave_up = true;
  });
  ASSERT_TRUE(eventually([&] { return stats().waiting == 1 || gave_up; }));
  auto patient = spawn([&] { std::lock_guard hold(mutex); });
  impatient.join();
  ASSERT_TRUE(waiting_is(1));
  mutex.unlock();
  patient.join();
}

RT_TEST(Mutex, TimeLimitsAndUnlocksMayMeet) {
  Mutex mutex;
  int count = 0, got = 0;
  std::atomic<int> wanted{0};
  WaitGroup all;
  for (int i = 0; i < 4; ++i) {
    all.go([&, i] {
      for (int n = 0; n < support::scaled(400); ++n) {
        if (i % 2 == 0) {
          std::lock_guard hold(mutex);
          ++count;
          if (n % 8 == 0) sleep_for(20us);
        } else if (mutex.try_lock_for(std::chrono::microseconds(10 + n % 30))) {
          ++count;
          ++got;
          mutex.unlock();
        }
        wanted += i % 2 == 0;
      }
    });
  }
  all.wait();
  EXPECT_EQ(count, wanted + got);
  EXPECT_TRUE(mutex.try_lock());
}

RT_TEST(Mutex, ItMayBeDestroyedByTheOneThatGotItLast) {
  for (int round = 0; round < support::scaled(2000); ++round) {
    auto mutex = std::make_unique<Mutex>();
    mutex->lock();
    auto other = spawn([raw = mutex.get()] { raw->unlock(); });
    mutex->lock();  // as soon as the other has unlocked it
    mutex->unlock();
    mutex.reset();
    other.join();
  }
}

RT_TEST(Mutex, PlainThreadsAndGoroutinesShareIt) {
  Mutex mutex;
  int count = 0;
  constexpr int kEach = 500;
  auto lock_often = [&] {
    for (int n = 0; n < kEach; ++n) {
      std::lock_guard hold(mutex);
      ++count;
    }
  };
  std::array<std::optional<PlainThread>, 3> threads;
  for (auto& thread : threads) thread.emplace(lock_often);
  WaitGroup all;
  for (int i = 0; i < 4; ++i) all.go(lock_often);
  all.wait();
  for (auto& thread : threads) thread->join();
  EXPECT_EQ(count, 7 * kEach);
}

TEST(MutexWithoutARuntime, PlainThreadsUseItAmongThemselves) {
  Mutex mutex;
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 5000; ++n) {
        std::lock_guard hold(mutex);
        ++count;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(count, 20'000);
  mutex.lock();
  EXPECT_FALSE(mutex.try_lock_for(1ms));
}

// Leaves five goroutines waiting for a mutex that lives on; run() drops them and unmaps their
// stacks.
void leave_five_waiting(Mutex& mutex) {
  run([&] {
    for (int i = 0; i < 5; ++i) go([&] { mutex.lock(); });
    ASSERT_TRUE(waiting_is(5));
  });
}

TEST(MutexAfterRun, UnlockDoesNotTouchWaitersThatWereDropped) {
  Mutex mutex;
  mutex.lock();
  leave_five_waiting(mutex);
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
  leave_five_waiting(mutex);
  run([&] { mutex.unlock(); });
  EXPECT_TRUE(mutex.try_lock());
}

TEST(MutexAfterRun, AThreadThatWaitsBesideDroppedGoroutinesGetsIt) {
  Mutex mutex;
  mutex.lock();
  leave_five_waiting(mutex);
  std::thread thread([&] { std::lock_guard hold(mutex); });
  std::thread timed([&] { EXPECT_FALSE(mutex.try_lock_for(1ms)); });
  timed.join();
  mutex.unlock();
  thread.join();
}

TEST(MutexAfterRun, AGoroutineThatWasWokenAndDroppedDoesNotKeepOthersWaiting) {
  Mutex mutex;
  mutex.lock();
  run(Options{.procs = 1}, [&] {
    go([&] { mutex.lock(); });
    ASSERT_TRUE(waiting_is(1));
    mutex.unlock();  // wakes it, but main ends before it runs
  });
  mutex.lock();
  std::thread thread([&] { std::lock_guard hold(mutex); });
  std::this_thread::sleep_for(1ms);
  mutex.unlock();
  thread.join();
}

// With one proc a goroutine that main wakes hardly ever runs before main returns; if it does there
// is nothing to see.
TEST(MutexAfterRun, AThreadBehindAGoroutineThatWasWokenAndDroppedGetsIt) {
  Mutex mutex;
  std::optional<SleepingThread> thread;
  run(Options{.procs = 1}, [&] {
    mutex.lock();
    go([&] { std::lock_guard hold(mutex); });
    ASSERT_TRUE(waiting_is(1));
    thread.emplace([&] { std::lock_guard hold(mutex); });
    mutex.unlock();
  });
  EXPECT_TRUE(thread->goes_on());
}

// It has waited so long that the mutex is handed to it.
void hand_to_a_goroutine_and_drop_it(Mutex& mutex, std::optional<SleepingThread>* thread) {
  std::thread other;
  std::atomic<bool> unlocked{false};
  run(Options{.procs = 1}, [&] {
    mutex.lock();
    go([&] { std::lock_guard hold(mutex); });
    ASSERT_TRUE(waiting_is(1));
    sleep_for(2ms);
    mutex.unlock();  // wakes it
    ASSERT_TRUE(mutex.try_lock());
    ASSERT_TRUE(eventually([] { return stats().runnable == 0; }));  // it waits again, starving
    if (thread != nullptr) thread->emplace([&] { std::lock_guard hold(mutex); });
    // As unlock() lets the new owner run: a thread that is none of ours gives it back while main
    // does not let it run.
    other = std::thread([&] {
      mutex.unlock();
      unlocked = true;
    });
    while (!unlocked) {
    }
  });
  other.join();
}

TEST(MutexAfterRun, AThreadBehindAGoroutineThatWasHandedItAndDroppedGetsIt) {
  Mutex mutex;
  std::optional<SleepingThread> thread;
  hand_to_a_goroutine_and_drop_it(mutex, &thread);
  EXPECT_TRUE(thread->goes_on());
}

TEST(MutexAfterRun, AMutexThatWasHandedToADroppedGoroutineCanBeLocked) {
  Mutex mutex;
  hand_to_a_goroutine_and_drop_it(mutex, nullptr);
  EXPECT_TRUE(mutex.try_lock_for(60s));
}

TEST(MutexAfterRun, TryLockTakesAMutexThatWasHandedToADroppedGoroutine) {
  Mutex mutex;
  hand_to_a_goroutine_and_drop_it(mutex, nullptr);
  ASSERT_TRUE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock());
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
}

// The time of a thread is up when the goroutines around it in line have been dropped.
TEST(MutexAfterRun, AThreadWhoseTimeIsUpDoesNotTouchDroppedNeighbours) {
  Mutex mutex;
  mutex.lock();
  std::thread thread;
  run([&] {
    auto start_two = [&](std::size_t so_far) {
      for (int i = 0; i < 2; ++i) go([&] { mutex.lock(); });
      ASSERT_TRUE(waiting_is(so_far + 2));
    };
    start_two(0);
    thread = std::thread([&] { EXPECT_FALSE(mutex.try_lock_for(20ms)); });
    sleep_for(2ms);
    start_two(2);
  });
  thread.join();
}

}  // namespace
}  // namespace magpie
