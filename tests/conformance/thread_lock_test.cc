// thread_lock_test.cc: a goroutine stays on its thread while it holds a ThreadLock.

#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "support/rt_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::eventually;

// Others that move from thread to thread meanwhile.
void keep_busy(WaitGroup& group, const std::atomic<bool>& stop) {
  for (int i = 0; i < 8; ++i) {
    group.go([&stop] {
      while (!stop.load(std::memory_order_relaxed)) yield();
    });
  }
}

RT_TEST(ThreadLock, WaitingAndYieldingDoNotChangeTheThread) {
  std::atomic<bool> stop{false};
  WaitGroup others;
  keep_busy(others, stop);
  std::atomic<int> wrong{0};
  WaitGroup locked;
  for (int i = 0; i < 3; ++i) {
    locked.go([&] {
      ThreadLock lock;
      const pid_t thread = gettid();
      Chan<int> answers;
      for (int k = 0; k < 20; ++k) {
        yield();
        if (gettid() != thread) ++wrong;
        go([answers, k] { answers.send(k); });
        if (*answers.recv() != k || gettid() != thread) ++wrong;
        sleep_for(100us);
        if (gettid() != thread) ++wrong;
        if (spawn([k] { return k; }).join() != k || gettid() != thread) ++wrong;
        blocking([] { usleep(50); });
        if (gettid() != thread) ++wrong;
      }
    });
  }
  locked.wait();
  stop.store(true);
  others.wait();
  EXPECT_EQ(wrong.load(), 0);
}

RT_TEST(ThreadLock, NobodyElseRunsOnTheThread) {
  std::atomic<pid_t> locked_thread{0};
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  WaitGroup group;
  group.go([&] {
    ThreadLock lock;
    locked_thread.store(gettid());
    for (int i = 0; i < 20; ++i) sleep_for(200us);
    locked_thread.store(0);
    stop.store(true);
  });
  for (int i = 0; i < 8; ++i) {
    group.go([&] {
      while (!stop.load(std::memory_order_relaxed)) {
        const pid_t theirs = locked_thread.load();
        if (theirs != 0 && theirs == gettid() && locked_thread.load() == theirs) ++wrong;
        yield();
      }
    });
  }
  group.wait();
  EXPECT_EQ(wrong.load(), 0);
}

RT_TEST(ThreadLock, Nests) {
  ThreadLock outer;
  const pid_t thread = gettid();
  {
    ThreadLock inner;
    yield();
  }
  sleep_for(100us);
  EXPECT_EQ(gettid(), thread);
}

TEST(ThreadLock, OnAPlainThreadItDoesNothing) { ThreadLock lock; }

RT_TEST(ThreadLock, AGoroutineThatEndsWithItEndsItsThread) {
  const int before = num_threads();
  std::vector<std::unique_ptr<ThreadLock>> leaked(4);
  std::set<pid_t> ended;
  Chan<pid_t> threads(4);
  for (auto& lock : leaked) {
    go([&lock, threads] {
      lock = std::make_unique<ThreadLock>();
      threads.send(gettid());
    });
  }
  for (std::size_t i = 0; i < leaked.size(); ++i) ended.insert(*threads.recv());
  ended.erase(getpid());  // the one that called run() never ends
  EXPECT_TRUE(eventually([&] {
    for (const pid_t thread : ended) {
      if (access(("/proc/self/task/" + std::to_string(thread)).c_str(), F_OK) == 0) return false;
    }
    return true;
  }));
  EXPECT_LE(num_threads(), before + 8);
  leaked.clear();
}

struct AtThreadEnd {
  std::function<void()> act;
  ~AtThreadEnd() {
    if (act) act();
  }
};
thread_local AtThreadEnd at_thread_end;

// True: it ended with its thread, which calls `act` then. False: on the thread that called run(),
// which does not end.
bool end_with_thread(ThreadLock*& leaked, std::function<void()> act) {
  Chan<bool> ended(1);
  go([&, ended] {
    if (gettid() == getpid()) return ended.send(false);
    leaked = new ThreadLock;
    at_thread_end.act = std::move(act);
    ended.send(true);
  });
  blocking([] { usleep(1000); });  // another thread has time to take it
  return *ended.recv();
}

TEST(ThreadLock, AThreadThatWaitsAsItEndsKeepsNoOtherFromBeingMade) {
  constexpr int kMoreThanThereAreThreads = 30;
  std::mutex mutex;
  std::condition_variable changed;
  int blocked = 0;
  bool waited_in_vain = false;
  auto all_are_blocked = [&] { return blocked == kMoreThanThereAreThreads; };
  std::unique_ptr<ThreadLock> leaked;
  run(Options{.procs = 2}, [&] {
    ThreadLock* lock = nullptr;
    while (!end_with_thread(lock, [&] {
      std::unique_lock hold(mutex);
      waited_in_vain = !changed.wait_for(hold, support::kGenerousLimit / 2, all_are_blocked);
    })) {
    }
    leaked.reset(lock);
    WaitGroup all;
    for (int i = 0; i < kMoreThanThereAreThreads; ++i) {
      all.go([&] {
        blocking([&] {
          std::unique_lock hold(mutex);
          ++blocked;
          changed.notify_all();
          changed.wait_for(hold, support::kGenerousLimit, all_are_blocked);
        });
      });
    }
    all.wait();
  });
  EXPECT_FALSE(waited_in_vain);
}

RT_TEST(ThreadLock, ALoopWithItIsPreempted) {
  std::atomic<bool> stop{false};
  WaitGroup loops;
  for (int i = 0; i < procs(); ++i) {
    loops.go([&] {
      ThreadLock lock;
      const pid_t thread = gettid();
      while (!stop.load(std::memory_order_relaxed)) usleep(0);
      EXPECT_EQ(gettid(), thread);
    });
  }
  for (int i = 0; i < 3; ++i) sleep_for(1ms);
  stop.store(true);
  loops.wait();
}

}  // namespace
}  // namespace magpie
