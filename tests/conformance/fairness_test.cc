// fairness_test.cc: goroutines that compute without ever calling the runtime share its Ps, and do
// not hold up those that wake up beside them.

#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "support/at_procs.h"
#include "support/let_signals_in.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::cpu_time_of_this_thread;
using support::eventually;
using support::let_signals_in;
using support::spin_until;

class Fairness : public support::AtProcs {};
INSTANTIATE_TEST_SUITE_P(AtProcs, Fairness, support::kFewProcs, testing::PrintToStringParamName());

TEST_P(Fairness, EachOfManyLoopsBegins) {
  run(Options{.procs = procs()}, [] {
    constexpr int kLoops = 20;
    std::atomic<int> begun{0};
    WaitGroup loops;
    for (int i = 0; i < kLoops; ++i) {
      loops.go([&] {
        ++begun;
        while (begun.load(std::memory_order_relaxed) < kLoops) let_signals_in();
      });
    }
    loops.wait();
    EXPECT_EQ(begun.load(), kLoops);
  });
}

TEST_P(Fairness, LoopsGetAboutAsMuchCpuTimeEach) {
  using Nanoseconds = std::chrono::nanoseconds::rep;
  run(Options{.procs = procs(), .time_slice = 2ms}, [this] {
    std::atomic<bool> stop{false};
    std::vector<std::atomic<Nanoseconds>> used(static_cast<std::size_t>(2 * procs()));
    WaitGroup loops;
    for (auto& mine : used) {
      loops.go([&] {
        const auto begin = cpu_time_of_this_thread();
        while (!stop.load(std::memory_order_relaxed)) {
          mine.store((cpu_time_of_this_thread() - begin).count(), std::memory_order_relaxed);
        }
      });
    }
    // Twenty slices for the one that got least. If they were not shared fairly, others would have
    // many times as much, and ever more; what the system gives to one thread and not to another
    // evens out.
    EXPECT_TRUE(eventually([&] {
      sleep_for(5ms);
      auto [least, most] =
          std::ranges::minmax_element(used, {}, [](auto& mine) { return mine.load(); });
      return *least >= std::chrono::nanoseconds(40ms).count() && *most < 3 * *least;
    }));
    stop.store(true);
    loops.wait();
  });
}

// With slices that never end: whoever had to wait for one would never go on.
constexpr auto kEndlessSlice = 1h;

TEST_P(Fairness, TimersDoNotWaitForSlicesToEnd) {
  run(Options{.procs = procs(), .time_slice = kEndlessSlice}, [this] {
    std::atomic<bool> stop{false};
    WaitGroup loops;
    for (int i = 0; i < 2 * procs(); ++i) loops.go([&] { spin_until(stop); });
    for (int i = 0; i < 20; ++i) sleep_for(1ms);
    stop.store(true);
    loops.wait();
  });
}

TEST_P(Fairness, GoroutinesThatAreWokenDoNotWaitForSlicesToEnd) {
  run(Options{.procs = procs(), .time_slice = kEndlessSlice}, [this] {
    std::atomic<bool> stop{false};
    std::atomic<int> looping{0};
    Chan<int> wake_ups;
    WaitGroup loops;
    // They hold every P once main waits; each wakes somebody before it loops, and nothing after
    // that.
    for (int i = 0; i < procs(); ++i) {
      loops.go([&] {
        wake_ups.send(1);
        ++looping;
        spin_until(stop);
      });
    }
    for (int i = 0; i < procs(); ++i) EXPECT_EQ(*wake_ups.recv(), 1);
    while (looping.load() < procs()) yield();
    stop.store(true);
    loops.wait();
  });
}

TEST_P(Fairness, WhoIsBehindGoroutinesThatHaveNotBegunDoesNotWaitForTheirSlicesToEnd) {
  run(Options{.procs = procs(), .time_slice = kEndlessSlice}, [this] {
    std::atomic<bool> stop{false};
    WaitGroup loops;
    for (int i = 0; i < 3 * procs(); ++i) loops.go([&] { spin_until(stop); });
    yield();  // to the end of the ring, behind all but the one that was started last
    stop.store(true);
    loops.wait();
  });
}

TEST_P(Fairness, WhoComesBackFromABlockingCallDoesNotWaitForSlicesToEnd) {
  run(Options{.procs = procs(), .time_slice = kEndlessSlice}, [this] {
    std::atomic<bool> stop{false};
    WaitGroup loops;
    for (int i = 0; i < procs(); ++i) loops.go([&] { spin_until(stop); });
    for (int i = 0; i < 5; ++i) blocking([] { std::this_thread::sleep_for(1ms); });
    stop.store(true);
    loops.wait();
  });
}

// They run others all the time, in place, and never let the P look for work.
TEST_P(Fairness, NobodyWaitsForSlicesOfGoroutinesThatJoinInPlaceToEnd) {
  run(Options{.procs = procs(), .time_slice = kEndlessSlice}, [this] {
    std::atomic<bool> stop{false};
    WaitGroup joiners;
    for (int i = 0; i < 2 * procs(); ++i) {
      joiners.go([&] {
        while (!stop.load(std::memory_order_relaxed)) spawn([] {}).join();
      });
    }
    for (int i = 0; i < 5; ++i) sleep_for(1ms);
    for (int i = 0; i < 5; ++i) blocking([] { std::this_thread::sleep_for(1ms); });
    stop.store(true);
    joiners.wait();
  });
}

// The holder of a P sets some goroutines of its ring aside, and others do not see them.
TEST_P(Fairness, GoroutinesBehindALoopRunAlthoughAnotherPIsIdle) {
  for (int place : {1, 3, 8}) {
    run(Options{.procs = procs()}, [place] {
      constexpr int kOthers = 200;
      std::atomic<int> ran{0};
      WaitGroup all;
      for (int i = 0; i <= kOthers; ++i) {
        all.go([&ran, loops = i == place] {
          while (loops && ran.load(std::memory_order_relaxed) < kOthers) let_signals_in();
          ++ran;
        });
      }
      all.wait();
    });
  }
}

// Without preemption nothing takes the P from a loop. So nothing may be set aside for its P alone.
TEST(Fairness, WithoutPreemptionNothingIsReservedBehindALoop) {
  run(Options{.procs = 2, .preempt = false}, [] {
    constexpr int kOthers = 200;
    std::atomic<int> ran{0};
    WaitGroup all;
    for (int i = 0; i <= kOthers; ++i) {
      all.go([&ran, loops = i == 3] {
        while (loops && ran < kOthers) let_signals_in();
        ++ran;
      });
    }
    all.wait();
    EXPECT_EQ(ran, kOthers + 1);
  });
}

// Two Ps are busy for so long that goroutines of the global queue are overdue. Then both Ps look
// there, and have nothing else to do soon after.
void keep_goroutines_in_line_behind_a_loop() {
  run(Options{.procs = 2, .preempt = false}, [] {
    constexpr int kOthers = 20;
    std::atomic<int> ran{0};
    std::atomic<bool> queued{false};
    WaitGroup busy, all;
    for (int i = 0; i < 8;
         ++i) {  // so that each P has some in its ring, and looks elsewhere now and then
      busy.go([&] {
        spin_until(queued);
        for (int turn = 0; turn < 100; ++turn) yield();
      });
    }
    all.add(kOthers + 1);
    std::thread outsider([&] {
      for (int i = 0; i <= kOthers; ++i) {
        go([&, loops = i == 0] {
          while (loops && ran < kOthers) let_signals_in();
          ++ran;
          all.done();
        });
      }
      std::this_thread::sleep_for(50ms);  // until they are overdue
      queued = true;
    });
    busy.wait();
    all.wait();
    outsider.join();
    EXPECT_EQ(ran, kOthers + 1);
  });
}

TEST(Fairness, WithoutPreemptionNothingIsKeptInAnInboxBehindALoop) {
  for (int round = 0; round < 20; ++round) keep_goroutines_in_line_behind_a_loop();
}

// Main waits without a timer: one that is due would let the others in.
void run_short_ones_beside_loops() {
  constexpr int kLoops = 3, kShort = 1000;  // more than fit in the ring
  std::atomic<int> begun{0}, done{0};
  std::atomic<bool> give_up{false};
  std::thread watches([&] { give_up = !eventually([&] { return done == kShort; }); });
  run(Options{.procs = 1}, [&] {
    WaitGroup all;
    for (int i = 0; i < kLoops; ++i) {
      all.go([&] {
        ++begun;
        while (done.load(std::memory_order_relaxed) < kShort && !give_up) {
        }
      });
    }
    while (begun == 0) yield();
    for (int i = 0; i < kShort; ++i) all.go([&] { ++done; });
    all.wait();
  });
  watches.join();
  EXPECT_FALSE(give_up);
}

// Beside plain threads that keep the CPUs busy, a thread that gets a P comes late, and loops lose
// their CPU before their slice is over. Stopped loops must not have every turn for that.
TEST(FairnessOfStops, StoppedLoopsLeaveTurnsToTheUsualLineOnABusyMachine) {
  std::atomic<bool> stop_burning{false};
  std::vector<std::thread> burners;
  for (int i = 0; i < 4 * num_cpu(); ++i) {
    burners.emplace_back([&] {
      while (!stop_burning.load(std::memory_order_relaxed)) {
      }
    });
  }
  for (int round = 0; round < 10 && !HasFailure(); ++round) run_short_ones_beside_loops();
  stop_burning = true;
  for (std::thread& burner : burners) burner.join();
}

// Two pairs, each of which wakes each other; one does a thousand times as much in each step.
TEST(Fairness, PairsThatWakeEachOtherGetTimeNotTurns) {
  run(Options{.procs = 1}, [] {
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> heavy{0}, light{0};
    WaitGroup all;
    auto play = [&](std::uint64_t work, std::atomic<std::uint64_t>& done) {
      auto compute = [work, &done] {
        for (std::uint64_t i = 0; i < work; ++i) asm volatile("");
        done += work;
      };
      Chan<void> there, back;
      all.go([=, &stop] {
        while (!stop) {
          compute();
          there.send();
          if (!back.recv()) break;
        }
        there.close();
      });
      all.go([=, &stop] {
        while (there.recv() && !stop) {
          compute();
          back.send();
        }
        back.close();
      });
    };
    play(1'000'000, heavy);
    play(1'000, light);
    constexpr std::uint64_t kEnough = 400'000'000;
    EXPECT_TRUE(eventually([&] {
      sleep_for(1ms);
      return heavy.load() > kEnough;
    }));
    EXPECT_LT(heavy.load(), 10 * light.load());
    stop = true;
    all.wait();
  });
}

// A loop that was stopped waits for three times as long as it made others wait. What it computed
// before they came is not theirs.
TEST(FairnessOfStops, ALoopIsNotStoppedForAsLongAsItComputedAlone) {
  run(Options{.procs = 1}, [] {
    constexpr auto kAlone = 1s;
    std::atomic<bool> alone{true}, stop{false};
    std::thread starts_others([&] {
      while (alone) std::this_thread::yield();
      for (int i = 0; i < 20; ++i) {
        go([&stop] {
          while (!stop) yield();
        });
      }
    });
    auto last = std::chrono::steady_clock::now();
    std::chrono::nanoseconds longest{0};
    // It never calls the runtime, so it stays on this thread.
    const auto begin = cpu_time_of_this_thread();
    for (auto used = 0ns; used < kAlone + 100ms; used = cpu_time_of_this_thread() - begin) {
      if (used >= kAlone) alone = false;
      const auto now = std::chrono::steady_clock::now();
      if (!alone) longest = std::max(longest, now - last);
      last = now;
      let_signals_in();
    }
    EXPECT_LT(longest, kAlone);
    stop = true;
    blocking([&] { starts_others.join(); });
    EXPECT_TRUE(eventually([] { return num_goroutines() == 1; }));
  });
}

}  // namespace
}  // namespace magpie
