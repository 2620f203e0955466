// lock_test.cc: the lock inside the runtime.

#include "base/lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "support/thread_state.h"

namespace magpie::base {
namespace {

TEST(Lock, OneThreadAtATimeHoldsIt) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 20'000;
  Lock lock;
  int inside = 0;
  int total = 0;
  bool shared = false;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        std::lock_guard hold(lock);
        if (++inside != 1) shared = true;
        ++total;
        --inside;
      }
    });
  }
  threads.clear();
  EXPECT_FALSE(shared);
  EXPECT_EQ(total, kThreads * kRounds);
}

TEST(Lock, TryLockFailsWhileItIsHeldAndWorksAfterwards) {
  UncheckedLock lock;  // Clang does not understand that the second try fails
  lock.lock();
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
}

TEST(Lock, AThreadThatHasToWaitSleepsInTheKernelUntilItIsFree) {
  Lock lock;
  std::atomic<pid_t> waiter{0};
  std::atomic<bool> got_it{false};
  lock.lock();
  std::jthread thread([&] {
    waiter = gettid();
    std::lock_guard hold(lock);
    got_it = true;
  });
  while (waiter == 0 || !support::thread_sleeps(waiter)) std::this_thread::yield();
  EXPECT_FALSE(got_it);
  lock.unlock();
  thread.join();
  EXPECT_TRUE(got_it);
}

TEST(Lock, EveryOneOfSeveralSleepersGetsItInTheEnd) {
  constexpr int kSleepers = 3;
  Lock lock;
  std::atomic<pid_t> ids[kSleepers] = {};
  int passed = 0;
  lock.lock();
  std::vector<std::jthread> threads;
  for (auto& id : ids) {
    threads.emplace_back([&] {
      id = gettid();
      std::lock_guard hold(lock);
      ++passed;
    });
  }
  for (auto& id : ids) {
    while (id == 0 || !support::thread_sleeps(id)) std::this_thread::yield();
  }
  lock.unlock();
  threads.clear();
  EXPECT_EQ(passed, kSleepers);
}

}  // namespace
}  // namespace magpie::base
