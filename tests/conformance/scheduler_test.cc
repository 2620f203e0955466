// scheduler_test.cc: in which order goroutines run. What Go's scheduler is known for, at one proc,
// where it can be seen.

#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <vector>

#include "support/baton.h"
#include "support/plain_thread.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::Baton;
using support::eventually;
using support::PlainThread;

// Nobody is stopped, however long it takes: the order is the queues' alone.
void at_one_proc(void (*body)()) { run(Options{.procs = 1, .preempt = false}, body); }

TEST(Scheduler, TheGoroutineStartedLastRunsFirstThenTheOthersInOrder) {
  at_one_proc([] {
    std::vector<int> order;
    WaitGroup all;
    for (int i = 0; i < 10; ++i) all.go([&order, i] { order.push_back(i); });
    all.wait();
    EXPECT_EQ(order, (std::vector<int>{9, 0, 1, 2, 3, 4, 5, 6, 7, 8}));
  });
}

TEST(Scheduler, NothingRunsBeforeItsStarterBlocks) {
  at_one_proc([] {
    int ran = 0;
    for (int i = 0; i < 100; ++i) go([&ran] { ++ran; });
    EXPECT_EQ(ran, 0);
    yield();
    EXPECT_EQ(ran, 100);
  });
}

TEST(Scheduler, YieldLetsEveryReadyGoroutineRunBeforeItReturns) {
  at_one_proc([] {
    bool over = false;
    std::vector<int> turns(20);
    WaitGroup all;
    for (std::size_t i = 0; i < turns.size(); ++i) {
      all.go([&, i] {
        while (!over) {
          ++turns[i];
          yield();
        }
      });
    }
    for (int round = 1; round <= 50; ++round) {
      yield();
      for (int turn : turns) EXPECT_EQ(turn, round);
    }
    over = true;
    all.wait();  // they look at what is on this stack
  });
}

TEST(Scheduler, GoroutinesThatYieldTakeTurnsInOrder) {
  at_one_proc([] {
    std::vector<int> order;
    WaitGroup all;
    for (int i = 0; i < 3; ++i) {
      all.go([&order, i] {
        for (int round = 0; round < 3; ++round) {
          order.push_back(i);
          yield();
        }
      });
    }
    all.wait();
    EXPECT_EQ(order, (std::vector<int>{2, 0, 1, 2, 0, 1, 2, 0, 1}));
  });
}

TEST(Scheduler, YieldReturnsAtOnceWhenNobodyElseIsReady) {
  at_one_proc([] {
    const std::uint64_t before = stats().total.switches;
    for (int i = 0; i < 1000; ++i) yield();
    EXPECT_LE(stats().total.switches, before + 1000);
  });
}

TEST(Scheduler, TheGoroutineReadiedLastRunsFirst) {
  at_one_proc([] {
    std::vector<int> order;
    WaitGroup first_gate, second_gate, all;
    first_gate.add(1);
    second_gate.add(1);
    all.go([&] {
      first_gate.wait();
      order.push_back(1);
    });
    all.go([&] {
      second_gate.wait();
      order.push_back(2);
    });
    yield();  // both wait now
    all.go([&] { order.push_back(3); });
    first_gate.done();
    second_gate.done();
    all.wait();
    EXPECT_EQ(order, (std::vector<int>{2, 3, 1}));
  });
}

RT_TEST(Scheduler, AGoroutineThatBlocksDoesNotRunBeforeItIsReadied) {
  WaitGroup gate;
  gate.add(1);
  std::atomic<bool> readied{false}, early{false}, ran{false};
  go([&] {
    gate.wait();
    if (!readied) early = true;
    ran = true;
  });
  for (int i = 0; i < 20; ++i) {
    go([] {
      for (int k = 0; k < 50; ++k) yield();
    });
  }
  ASSERT_TRUE(eventually([] { return stats().waiting == 1 && num_goroutines() == 2; }));
  EXPECT_FALSE(ran);
  readied = true;
  gate.done();
  EXPECT_TRUE(eventually([&] { return ran.load(); }));
  EXPECT_FALSE(early);
  EXPECT_TRUE(eventually([] { return num_goroutines() == 1; }));
}

// Else it would wait out the slices of all that may run for long.
TEST(Scheduler, AGoroutineThatATimerWakesOvertakesThoseThatHaveNotBegun) {
  at_one_proc([] {
    const auto due = std::chrono::steady_clock::now() + 1ms;
    int begun = 0;
    WaitGroup all;
    for (int i = 0; i < 3; ++i) {
      all.go([&] {
        ++begun;
        while (std::chrono::steady_clock::now() < due) {
        }
      });
    }
    sleep_until(due);
    EXPECT_LE(begun, 1);  // 0: it was due before it could fall asleep, on a busy machine
    all.wait();
  });
}

// Two goroutines keep the ring from ever being empty, so only the 61st tick helps.
TEST(Scheduler, TheGlobalQueueIsLookedAtEvery61stTick) {
  at_one_proc([] {
    std::atomic<bool> published{false}, ran{false};
    int turns = 0;
    WaitGroup all;
    for (int i = 0; i < 2; ++i) {
      all.go([&] {
        while (!ran.load(std::memory_order_relaxed)) {
          if (published.load(std::memory_order_acquire)) ++turns;
          yield();
        }
      });
    }
    // Both are in the ring now; the one started last ran first, in a slice that was not its own
    yield();
    PlainThread outsider([&] {
      go([&] { ran = true; });  // from a plain thread: into the global queue
      published.store(true, std::memory_order_release);
    });
    all.wait();
    EXPECT_LE(turns, 61);
  });
}

// All that the two do is one turn, which lasts for a millisecond.
TEST(Scheduler, APairThatWakesEachOtherDoesNotStarveTheRing) {
  at_one_proc([] {
    Baton to_ping, to_pong;
    bool ring_ran = false, over = false;
    std::int64_t rounds = 0;
    std::uint64_t turns = 0;
    WaitGroup all;
    all.go([&] {
      while (!over) {
        to_ping.take();
        to_pong.give();
      }
    });
    all.go([&] {
      while (!ring_ran) {
        ++rounds;
        to_ping.give();
        to_pong.take();
        if (rounds != 5) continue;
        turns = stats().total.ticks;
        go([&] { ring_ran = true; }), go([] {});  // the first one goes to the ring
      }
      over = true;
      to_ping.give();
    });
    all.wait();
    EXPECT_LT(stats().total.ticks - turns, 10U);
  });
}

TEST(Scheduler, APairThatWakesEachOtherDoesNotStarveTheGlobalQueue) {
  at_one_proc([] {
    Baton to_ping, to_pong;
    std::atomic<bool> ran{false};
    bool over = false;
    WaitGroup all;
    all.go([&] {
      while (!over) {
        to_ping.take();
        to_pong.give();
      }
    });
    all.go([&] {
      while (!ran) {
        to_ping.give();
        to_pong.take();
      }
      over = true;
      to_ping.give();
    });
    PlainThread outsider([&] { go([&] { ran = true; }); });
    all.wait();
  });
}

RT_TEST(Scheduler, EveryGoroutineRunsExactlyOnceHoweverMany) {
  constexpr std::size_t kGoroutines = 30'000;
  std::vector<std::atomic<std::uint8_t>> runs(kGoroutines);
  WaitGroup all;
  for (std::size_t i = 0; i < kGoroutines; ++i) all.go([&runs, i] { runs[i].fetch_add(1); });
  all.wait();
  for (std::size_t i = 0; i < kGoroutines; ++i) ASSERT_EQ(runs[i], 1) << i;
}

// It sits in the next slot of a P whose goroutine computes and never calls the runtime.
TEST(Scheduler, AGoroutineStartedByOneThatComputesIsRunByAnotherP) {
  for (const int n : {2, 8}) {
    run(Options{.procs = n}, [] {
      for (int round = 0; round < 20; ++round) {
        std::atomic<bool> ran{false};
        WaitGroup all;
        all.go([&ran] { ran = true; });
        while (!ran.load(std::memory_order_acquire)) {
        }
        all.wait();
      }
    });
  }
}

TEST(Scheduler, TheRingOfAPThatComputesIsRunByAnotherP) {
  for (const int n : {2, 8}) {
    run(Options{.procs = n}, [] {
      for (int round = 0; round < 20; ++round) {
        std::atomic<int> ran{0};
        WaitGroup all;
        for (int i = 0; i < 50; ++i) all.go([&ran] { ran.fetch_add(1); });
        while (ran.load(std::memory_order_acquire) < 50) {
        }
        all.wait();
      }
    });
  }
}

}  // namespace
}  // namespace magpie
