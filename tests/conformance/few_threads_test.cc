// few_threads_test.cc: a P stays idle for want of a thread. Goroutines that bring their own get it,
// and it is tried again for the others.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include "support/let_signals_in.h"
#include "support/os_faults.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::let_signals_in;
using support::spin_until;

// The goroutine ends with a ThreadLock, and its thread with it, while main waits in the middle of
// its loop.
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
    go([&turns, count] { count(turns[1]); });  // it may outlive main, and its variables
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
    const auto begin = std::chrono::steady_clock::now();
    while (used(CLOCK_THREAD_CPUTIME_ID) - mine_before < 500ms) let_signals_in();
    const auto mine = used(CLOCK_THREAD_CPUTIME_ID) - mine_before;
    // Of the time that passes: that is much more than its own on a busy machine.
    const auto passed = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(used(CLOCK_PROCESS_CPUTIME_ID) - all_before - mine, passed / 10);
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

// Below: two threads, of which one is in a call that blocks, or waits with a goroutine that is
// bound to it. The other one never searches for work.

constexpr Options kTwoThreads{.procs = 2, .max_threads = 2};

void block_until(const std::atomic<bool>& over) {
  blocking([&] {
    while (!over) std::this_thread::sleep_for(100us);
  });
}

// Starts it on the other thread.
template <class F>
void go_elsewhere(F f) {
  std::atomic<bool> begun{false};
  go([&begun, f] {
    begun = true;
    f();
  });
  while (!begun) let_signals_in();  // acquires: its place on the stack is used again
}

// A goroutine that is bound to the other thread waits there until it is told.
void keep_other_thread_waiting(Chan<void> told) {
  go_elsewhere([told] {
    ThreadLock lock;
    told.recv();
  });
}

TEST(FewThreads, ATimerFiresAlthoughTheHolderOfItsPBlocksAndTheOtherThreadYields) {
  for (const int procs : {2, 3}) {  // the third P lies idle
    std::atomic<bool> fired{false};
    run(Options{.procs = procs, .max_threads = 2}, [&fired] {
      go_elsewhere([&fired] {
        after_func(5ms, [&fired] { fired = true; });
        block_until(fired);
      });
      EXPECT_TRUE(support::eventually([&] { return fired.load(); }));
      fired = true;
    });
  }
}

TEST(FewThreads, GoroutinesRunAlthoughTheHolderOfTheirPBlocksAndTheOtherThreadYields) {
  for (const int procs : {2, 3}) {
    std::atomic<int> ran{0};
    std::atomic<bool> all_ran{false};
    run(Options{.procs = procs, .max_threads = 2}, [&] {
      go_elsewhere([&] {
        for (int i = 0; i < 10; ++i) {
          go([&] {
            if (++ran == 10) all_ran = true;
          });
        }
        block_until(all_ran);
      });
      EXPECT_TRUE(support::eventually([&] { return all_ran.load(); }));
      all_ran = true;
    });
  }
}

TEST(FewThreads, ASleepOfABoundGoroutineEndsWhateverTheOtherThreadDoes) {
  std::atomic<bool> woke{false};
  run(kTwoThreads, [&woke] {
    go_elsewhere([&woke] {
      ThreadLock lock;
      sleep_for(5ms);
      woke = true;
    });
    EXPECT_TRUE(support::eventually([&] { return woke.load(); }));  // yields
    woke = false;
    go_elsewhere([&woke] {
      ThreadLock lock;
      sleep_for(5ms);
      woke = true;
    });
    block_until(woke);
  });
}

TEST(FewThreads, ABoundGoroutineRunsAlthoughItsWakerBlocksTheThreadWithTheOnlyP) {
  Chan<void> told;
  std::atomic<bool> ran{false};
  std::atomic<bool> waits{false};
  run(Options{.procs = 1, .max_threads = 2}, [&] {
    go([&, told] {
      ThreadLock lock;
      waits = true;
      told.recv();
      ran = true;
    });
    EXPECT_TRUE(support::eventually([&] { return waits.load(); }));
    told.send();
    block_until(ran);
  });
}

TEST(FewThreads, TheNetworkIsServedAlthoughTheOnlyOtherThreadYields) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  std::atomic<bool> readable{false};
  run(kTwoThreads, [&] {
    Chan<void> told;
    go([&] {
      net::wait_readable(ends[0]);
      readable = true;
    });
    yield();
    keep_other_thread_waiting(told);
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    EXPECT_TRUE(support::eventually([&] { return readable.load(); }));
    told.send();
  });
  close(ends[0]);
  close(ends[1]);
}

TEST(FewThreads, ABoundGoroutineIsServedByTheNetworkAlthoughTheOtherThreadBlocks) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  std::atomic<bool> readable{false};
  run(kTwoThreads, [&] {
    go_elsewhere([&] {
      ThreadLock lock;
      net::wait_readable(ends[0]);
      readable = true;
    });
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    block_until(readable);
  });
  close(ends[0]);
  close(ends[1]);
}

// Without a thread for sysmon nothing would stop goroutines that loop, or block.
TEST(FewThreads, WithoutASecondThreadRunSaysWhatIsMissingAndBeginsNothing) {
  bool has_begun = false;
  {
    support::ThreadFaults refuse_all;
    try {
      run([&] { has_begun = true; });
      ADD_FAILURE() << "it throws nothing";
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::resource_unavailable_try_again);
      EXPECT_NE(std::string(error.what()).find("raise the limit"), std::string::npos);
    }
  }
  EXPECT_FALSE(has_begun);
  EXPECT_EQ(goroutine_id(), 0u);
  run([&] { has_begun = true; });
  EXPECT_TRUE(has_begun);
}

TEST(FewThreads, WithoutAMakerLoopsAndBlockingCallsHoldNobodyUp) {
  support::ThreadsAsk ask([](int number) {
    constexpr int kMaker = 2;
    return number != kMaker;
  });
  run(Options{.procs = 1}, [] {
    std::atomic<bool> ran{false};
    go([&ran] { ran = true; });
    spin_until(ran);
    ran = false;
    go([&ran] { ran = true; });
    blocking([&ran] {
      while (!ran) usleep(100);
    });
  });
}

TEST(FewThreads, ADeadlineEndsTheWaitOfABoundGoroutineThatHasTheOnlyThread) {
  run(Options{.procs = 1, .max_threads = 1}, [] {
    ThreadLock here;
    Mutex mutex;
    mutex.lock();
    std::error_code error;
    EXPECT_FALSE(mutex.lock(Context::background().with_timeout(1ms), error));
    EXPECT_EQ(error, std::make_error_code(std::errc::timed_out));
    Context context = Context::background().with_timeout(1ms);
    EXPECT_EQ(select(on_recv(Chan<int>::nil()), on_done(context)), 1u);
  });
}

// Below: the threads that there are never come to rest. A goroutine that takes its P back at once,
// when sysmon has taken it for others, would keep them waiting for ever.

bool is_late(std::chrono::steady_clock::time_point since) {
  return std::chrono::steady_clock::now() - since > 20s;
}

void call_the_runtime() {
  after_func(1h, [] {}).stop();
}

TEST(FewThreads, OthersRunBesideGoroutinesThatBlockAllThreadsAgainAndAgain) {
  for (const bool is_declared : {true, false}) {
    run(kTwoThreads, [is_declared] {
      const auto begin = std::chrono::steady_clock::now();
      std::atomic<bool> over{false};
      WaitGroup all;
      for (int i = 0; i < 3; ++i) {
        all.go([&over, is_declared, begin] {
          while (!over && !is_late(begin)) {
            if (is_declared) {
              blocking([] { std::this_thread::sleep_for(100us); });
            } else {
              std::this_thread::sleep_for(500us);
              call_the_runtime();
            }
          }
        });
      }
      sleep_for(10ms);
      all.go([&over] { over = true; });
      yield();
      all.wait();
      EXPECT_FALSE(is_late(begin)) << (is_declared ? "declared" : "undeclared");
    });
  }
}

TEST(FewThreads, OthersRunBesideALoopThatOnlyCallsTheRuntime) {
  run(Options{.procs = 1, .max_threads = 1}, [] {
    auto calls_until = [](const std::atomic<bool>& happened) {
      const auto begin = std::chrono::steady_clock::now();
      while (!happened && !is_late(begin)) call_the_runtime();
      return happened.load();
    };
    std::atomic<bool> slept{false}, ran{false};
    go([&slept] {
      sleep_for(1ms);
      slept = true;
    });
    EXPECT_TRUE(calls_until(slept));
    std::thread([&ran] { go([&ran] { ran = true; }); }).join();
    EXPECT_TRUE(calls_until(ran));
    slept = ran = true;
    yield();  // the goroutines still use them
  });
}

}  // namespace
}  // namespace magpie
