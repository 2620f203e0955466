// quick_lock_test.cc: the lock that is released by a plain store.

#include "base/quick_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "support/test_length.h"

namespace magpie::base {
namespace {

TEST(QuickLock, IsHeldByOneAtATime) {
  prepare_fences();
  UncheckedQuickLock lock;  // Clang does not understand that the second try fails
  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(QuickLock, ManyThreadsCountTogether) {
  prepare_fences();
  QuickLock lock;
  long count = 0;  // plain
  const int rounds = support::scaled(50'000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < rounds; ++n) {
        std::lock_guard hold(lock);
        ++count;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(count, 4L * rounds);
}

TEST(QuickLock, ThreadsThatHadToSleepAllGetIt) {
  prepare_fences();
  QuickLock lock;
  for (int round = 0; round < 20; ++round) {
    lock.lock();
    std::atomic<int> got{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        std::lock_guard hold(lock);
        ++got;
      });
    }
    for (int i = 0; i < 100; ++i) std::this_thread::yield();  // some of them sleep by now
    EXPECT_EQ(got, 0);
    lock.unlock();
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(got, 8);
  }
}

TEST(QuickLock, OneUnlockWakesASleeperAndTheOthersNeedNotUntilItHasRun) {
  prepare_fences();
  QuickLockWords words;
  ASSERT_TRUE(words.try_lock());
  words.call_for_it();
  EXPECT_TRUE(words.unlock() && words.answer());
  for (int i = 0; i < 3; ++i) {  // the sleeper has been woken, and has no CPU yet
    ASSERT_TRUE(words.try_lock());
    EXPECT_FALSE(words.unlock());
  }
  ASSERT_TRUE(words.try_lock());
  words.call_for_it();  // it runs, and finds the lock held
  EXPECT_TRUE(words.unlock() && words.answer());
}

TEST(QuickLock, ASleeperThatGetsItCallsForTheNext) {
  prepare_fences();
  QuickLockWords words;
  ASSERT_TRUE(words.try_lock());
  for (int i = 0; i < 2; ++i) words.call_for_it();
  EXPECT_TRUE(words.unlock() && words.answer());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(words.try_lock());
    words.call_for_next();
    EXPECT_TRUE(words.unlock() && words.answer());
  }
  ASSERT_TRUE(words.try_lock());
  EXPECT_FALSE(words.unlock());
}

}  // namespace
}  // namespace magpie::base
