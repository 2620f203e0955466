// rw_mutex_test.cc: many readers or one writer.

#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>

#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/sleeping_thread.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using support::PlainThread;
using support::SleepingThread;
using support::waiting_is;

constinit RWMutex static_rw_mutex;  // needs no constructor at run time

RT_TEST(RWMutex, ReadersShareIt) {
  static_rw_mutex.lock_shared();
  std::shared_lock second(static_rw_mutex);
  EXPECT_TRUE(static_rw_mutex.try_lock_shared());
  EXPECT_FALSE(static_rw_mutex.try_lock());
  static_rw_mutex.unlock_shared();
  static_rw_mutex.unlock_shared();
}

RT_TEST(RWMutex, AWriterIsAlone) {
  RWMutex mutex;
  mutex.lock();
  EXPECT_FALSE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock_shared());
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock_shared());
  mutex.unlock_shared();
}

RT_TEST(RWMutex, AWriterWaitsForAllReaders) {
  RWMutex mutex;
  mutex.lock_shared();
  mutex.lock_shared();
  std::atomic<bool> written{false};
  auto writer = spawn([&] {
    std::lock_guard hold(mutex);
    written = true;
  });
  ASSERT_TRUE(waiting_is(1));
  mutex.unlock_shared();
  for (int i = 0; i < 100; ++i) yield();
  EXPECT_FALSE(written);
  mutex.unlock_shared();
  writer.join();
  EXPECT_TRUE(written);
}

RT_TEST(RWMutex, AWriterThatWaitsKeepsNewReadersOut) {
  RWMutex mutex;
  mutex.lock_shared();
  std::string order;
  auto writer = spawn([&] {
    std::lock_guard hold(mutex);
    order += 'w';
  });
  ASSERT_TRUE(waiting_is(1));
  EXPECT_FALSE(mutex.try_lock_shared());
  auto reader = spawn([&] {
    std::shared_lock hold(mutex);
    order += 'r';
  });
  ASSERT_TRUE(waiting_is(2));
  mutex.unlock_shared();
  writer.join();
  reader.join();
  EXPECT_EQ(order, "wr");
}

RT_TEST(RWMutex, AfterAWriterAllReadersThatWaitedGoBeforeTheNextWriter) {
  RWMutex mutex;
  mutex.lock();
  std::atomic<int> reads{0};
  int reads_seen_by_writer = -1;
  auto writer = spawn([&] {
    std::lock_guard hold(mutex);
    reads_seen_by_writer = reads;
  });
  ASSERT_TRUE(waiting_is(1));
  WaitGroup readers;
  for (int i = 0; i < 10; ++i) {
    readers.go([&] {
      std::shared_lock hold(mutex);
      ++reads;
    });
  }
  ASSERT_TRUE(waiting_is(11));
  mutex.unlock();
  writer.join();
  readers.wait();
  EXPECT_EQ(reads_seen_by_writer, 10);
}

RT_TEST(RWMutex, WritersAreServedInTheOrderTheyCame) {
  RWMutex mutex;
  mutex.lock();
  std::string order;
  WaitGroup writers;
  for (char name : {'a', 'b', 'c', 'd'}) {
    writers.go([&, name] {
      std::lock_guard hold(mutex);
      order += name;
    });
    ASSERT_TRUE(waiting_is(order.size() + static_cast<std::size_t>(name - 'a') + 1));
  }
  mutex.unlock();
  writers.wait();
  EXPECT_EQ(order, "abcd");
}

RT_TEST(RWMutex, WhatAWriterWroteReadersSeeWhole) {
  RWMutex mutex;
  int a = 0, b = 0;
  std::atomic<int> inside{0};
  WaitGroup all;
  for (int i = 0; i < 8; ++i) {
    all.go([&, i] {
      for (int n = 0; n < support::scaled(1500); ++n) {
        if (i < 2) {
          std::lock_guard hold(mutex);
          EXPECT_EQ(inside, 0);
          ++a;
          if (n % 32 == 0) yield();
          ++b;
        } else {
          std::shared_lock hold(mutex);
          ++inside;
          EXPECT_EQ(a, b);
          if (n % 32 == 0) yield();
          --inside;
        }
      }
    });
  }
  all.wait();
  EXPECT_EQ(a, 2 * support::scaled(1500));
}

RT_TEST(RWMutex, PlainThreadsAndGoroutinesShareIt) {
  RWMutex mutex;
  int a = 0, b = 0;
  auto use = [&] {
    for (int n = 0; n < 300; ++n) {
      if (n % 8 == 0) {
        std::lock_guard hold(mutex);
        ++a;
        ++b;
      } else {
        std::shared_lock hold(mutex);
        EXPECT_EQ(a, b);
      }
    }
  };
  std::optional<PlainThread> threads[2];
  for (auto& thread : threads) thread.emplace(use);
  WaitGroup all;
  for (int i = 0; i < 4; ++i) all.go(use);
  all.wait();
  for (auto& thread : threads) thread->join();
  EXPECT_EQ(a, 6 * 38);
}

RT_TEST(RWMutex, ItMayBeDestroyedByTheOneThatGotItLast) {
  for (int round = 0; round < support::scaled(1000); ++round) {
    auto mutex = std::make_unique<RWMutex>();
    const bool shared = round % 2 == 0;
    shared ? mutex->lock_shared() : mutex->lock();
    auto other =
        spawn([raw = mutex.get(), shared] { shared ? raw->unlock_shared() : raw->unlock(); });
    mutex->lock();
    mutex->unlock();
    mutex.reset();
    other.join();
  }
}

TEST(RWMutexWithoutARuntime, PlainThreadsUseItAmongThemselves) {
  RWMutex mutex;
  int a = 0, b = 0;
  std::optional<std::thread> threads[4];
  for (auto& thread : threads) {
    thread.emplace([&] {
      for (int n = 0; n < 2000; ++n) {
        if (n % 10 == 0) {
          std::lock_guard hold(mutex);
          ++a;
          ++b;
        } else {
          std::shared_lock hold(mutex);
          EXPECT_EQ(a, b);
        }
      }
    });
  }
  for (auto& thread : threads) thread->join();
  EXPECT_EQ(a, 800);
}

TEST(RWMutexAfterRun, ReadersThatWereDroppedAreNotWaitedFor) {
  RWMutex mutex;
  mutex.lock();
  run([&] {
    for (int i = 0; i < 5; ++i) go([&] { mutex.lock_shared(); });
    ASSERT_TRUE(waiting_is(5));
  });
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
  mutex.lock();
  std::thread reader([&] { std::shared_lock hold(mutex); });
  std::thread writer([&] { std::lock_guard hold(mutex); });
  mutex.unlock();
  reader.join();
  writer.join();
}

// With one proc a goroutine that main wakes hardly ever runs before main returns; if it does there
// is nothing to see.
TEST(RWMutexAfterRun, AWriterThreadBehindAWriterThatWasWokenAndDroppedGetsIt) {
  RWMutex mutex;
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

TEST(RWMutexAfterRun, AWriterThatWasLetInAndDroppedDoesNotKeepIt) {
  RWMutex mutex;
  std::optional<SleepingThread> reader, writer;
  run(Options{.procs = 1}, [&] {
    mutex.lock_shared();
    go([&] { std::lock_guard hold(mutex); });
    ASSERT_TRUE(waiting_is(1));
    reader.emplace([&] { std::shared_lock hold(mutex); });
    writer.emplace([&] { std::lock_guard hold(mutex); });
    mutex.unlock_shared();
  });
  EXPECT_TRUE(reader->goes_on());
  EXPECT_TRUE(writer->goes_on());

  run(Options{.procs = 1}, [&] {
    mutex.lock_shared();
    go([&] { std::lock_guard hold(mutex); });
    ASSERT_TRUE(waiting_is(1));
    mutex.unlock_shared();
  });
  mutex.lock_shared();  // nobody waited when it was dropped
  mutex.unlock_shared();
}

TEST(RWMutexAfterRun, ReadersThatWereLetInAndDroppedAreNotWaitedFor) {
  RWMutex mutex;
  std::optional<SleepingThread> writer;
  auto let_in_and_drop = [&](bool with_thread) {
    run(Options{.procs = 1}, [&] {
      mutex.lock();
      for (int i = 0; i < 3; ++i) go([&] { std::shared_lock hold(mutex); });
      ASSERT_TRUE(waiting_is(3));
      if (with_thread) writer.emplace([&] { std::lock_guard hold(mutex); });
      mutex.unlock();
    });
  };
  let_in_and_drop(true);
  EXPECT_TRUE(writer->goes_on());
  let_in_and_drop(false);
  std::lock_guard hold(mutex);
}

TEST(RWMutexAfterRun, TryLockIsNotRefusedForTheSakeOfReadersThatWereLetInAndDropped) {
  RWMutex mutex;
  run(Options{.procs = 1}, [&] {
    mutex.lock();
    for (int i = 0; i < 3; ++i) go([&] { std::shared_lock hold(mutex); });
    ASSERT_TRUE(waiting_is(3));
    mutex.unlock();
  });
  ASSERT_TRUE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock_shared());
  mutex.unlock();
}

TEST(RWMutexAfterRun, TryLockIsNotRefusedForTheSakeOfAWriterThatWasLetInAndDropped) {
  RWMutex mutex;
  for (const bool shared : {false, true}) {
    run(Options{.procs = 1}, [&] {
      mutex.lock_shared();
      go([&] { std::lock_guard hold(mutex); });
      ASSERT_TRUE(waiting_is(1));
      mutex.unlock_shared();
    });
    if (shared) {
      ASSERT_TRUE(mutex.try_lock_shared());
      mutex.unlock_shared();
    } else {
      ASSERT_TRUE(mutex.try_lock());
      mutex.unlock();
    }
  }
}

TEST(RWMutexAfterRun, WritersThatWereDroppedLetOthersIn) {
  RWMutex mutex;
  mutex.lock_shared();
  run([&] {
    for (int i = 0; i < 3; ++i) go([&] { mutex.lock(); });
    ASSERT_TRUE(waiting_is(3));
  });
  mutex.unlock_shared();
  EXPECT_TRUE(mutex.try_lock_shared());
  mutex.unlock_shared();
  std::lock_guard hold(mutex);
}

}  // namespace
}  // namespace magpie
