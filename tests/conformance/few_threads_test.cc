// few_threads_test.cc: a P stays idle for want of a thread. Goroutines that bring their own get it, and it is tried again for the
// others.

#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <new>
#include <thread>

#include "support/let_signals_in.h"
#include "support/os_faults.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::let_signals_in;
using support::spin_until;

// The goroutine ends with a ThreadLock, and its thread with it, while main waits in the middle of its loop.
TEST(FewThreads, AStoppedGoroutineGoesOnWhenTheOnlyOtherThreadEnds) {
  run(Options{.procs = 1, .max_threads = 2}, [] {
    std::atomic<bool> over{false};
    go([&over] {
      alignas(ThreadLock) static std::byte place[sizeof(ThreadLock)];
      new (place) ThreadLock;  // never unlocked: the thread ends with the goroutine
      const auto until = std::chrono::steady_clock::now() + 35ms;
      while (std::chrono::steady_clock::now() < until) let_signals_in();
      over = true;
    });
    spin_until(over);
  });
}

TEST(FewThreads, TwoLoopsHaveAPEachOnceThereAreTwo) {
  std::atomic<std::uint64_t> turns[2]{};
  std::atomic<bool> stop{false};
  std::thread more_procs;
  run(Options{.procs = 1, .max_threads = 2}, [&] {
    more_procs = std::thread([&] {
      for (auto& loop : turns) {
        while (loop.load() == 0) std::this_thread::yield();
      }
      set_procs(2);
      for (auto& loop : turns) {
        const std::uint64_t before = loop.load();
        while (loop.load() == before) std::this_thread::yield();
      }
      stop = true;
    });
    auto count = [&stop](std::atomic<std::uint64_t>& mine) {
      while (!stop) {
        ++mine;
        let_signals_in();
      }
    };
    go([&] { count(turns[1]); });
    count(turns[0]);
  });
  more_procs.join();
}

TEST(FewThreads, GoroutinesThatCouldNotRunForWantOfAThreadRunOnceThereIsOne) {
  run(Options{.procs = 8}, [] {
    constexpr int kLoops = 7;
    std::atomic<int> begun{0};
    WaitGroup loops;
    {
      support::ThreadFaults no_threads;
      for (int i = 0; i < kLoops; ++i) {
        loops.go([&begun] {
          ++begun;
          while (begun.load(std::memory_order_relaxed) < kLoops) let_signals_in();
        });
      }
      while (support::ThreadFaults::requests() == 0) let_signals_in();
    }
    // Main never gives its P away, so they need all the others.
    while (begun.load(std::memory_order_relaxed) < kLoops) let_signals_in();
    loops.wait();
  });
}

TEST(FewThreads, AHigherLimitLetsWaitingGoroutinesRun) {
  run(Options{.procs = 2, .max_threads = 1}, [] {
    std::atomic<bool> ran{false};
    go([&ran] { ran = true; });
    set_max_threads(100);
    spin_until(ran);
  });
}

TEST(FewThreads, WaitingForAThreadCostsNoCpu) {
  run(Options{.procs = 1, .max_threads = 1}, [] {
    auto used = [](clockid_t clock) {
      timespec now{};
      clock_gettime(clock, &now);
      return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
    };
    go([] {});
    const auto all_before = used(CLOCK_PROCESS_CPUTIME_ID);
    const auto mine_before = used(CLOCK_THREAD_CPUTIME_ID);
    while (used(CLOCK_THREAD_CPUTIME_ID) - mine_before < 500ms) let_signals_in();
    const auto mine = used(CLOCK_THREAD_CPUTIME_ID) - mine_before;
    EXPECT_LT(used(CLOCK_PROCESS_CPUTIME_ID) - all_before - mine, mine / 10);
  });
}

// Sysmon sleeps when nothing happens and a P is idle. Here that P goes away under it.
TEST(FewThreads, LoopsAreStoppedAfterTheIdlePsAreTakenAway) {
  for (int i = 0; i < 3; ++i) {
    run(Options{.procs = 4}, [] {
      std::this_thread::sleep_for(100ms);  // nothing happens
      set_procs(1);
      std::atomic<bool> ran{false};
      go([&ran] { ran = true; });
      spin_until(ran);
    });
  }
}

}  // namespace
}  // namespace magpie
