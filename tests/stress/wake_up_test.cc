// wake_up_test.cc: threads fall asleep and are woken all the time. A lost wake-up hangs the test.

#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "base/random.h"
#include "support/baton.h"
#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using support::Baton;
using support::PlainThread;
using support::scaled;

struct Pair {
  Baton to_consumer, to_producer;
  long value = 0;  // whoever has the turn
};

// Everything else sleeps while main waits for the pairs, so the threads of the idle Ps do too.
RT_TEST(StressWakeUp, PairsOfProducersAndConsumersPassEveryValue) {
  for (const int pairs : {1, 2, 7}) {
    const int rounds = scaled(500'000) / pairs;
    std::vector<Pair> all(static_cast<std::size_t>(pairs));
    WaitGroup ended;
    for (Pair& pair : all) {
      ended.go([&pair, rounds] {
        for (long i = 1; i <= rounds; ++i) {
          pair.value = i;
          pair.to_consumer.give();
          pair.to_producer.take();
        }
      });
      ended.go([&pair, rounds] {
        for (long i = 1; i <= rounds; ++i) {
          pair.to_consumer.take();
          ASSERT_EQ(pair.value, i);
          pair.to_producer.give();
        }
      });
    }
    ended.wait();
  }
}

// The producer is a plain thread that pauses, so that all Ps are idle when it wakes the consumer.
RT_TEST(StressWakeUp, APlainThreadWakesASleepingRuntimeEveryTime) {
  const std::uint64_t seed = support::printed_seed();
  const int rounds = scaled(6000);
  Pair pair;
  std::thread producer([&pair, rounds, seed] {
    base::Random random(seed);
    for (long i = 1; i <= rounds; ++i) {
      pair.value = i;
      pair.to_consumer.give();
      pair.to_producer.take();
      // Idle for a moment, of any length around the time that a thread takes to fall asleep.
      const auto until =
          std::chrono::steady_clock::now() + std::chrono::nanoseconds(random.next() % 60'000);
      while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
    }
  });
  for (long i = 1; i <= rounds; ++i) {
    pair.to_consumer.take();
    ASSERT_EQ(pair.value, i);
    pair.to_producer.give();
  }
  producer.join();
}

// Bursts with pauses: the threads of all Ps wake up, run dry and fall asleep again.
RT_TEST(StressWakeUp, BurstsOfGoroutinesFromAPlainThreadAllRun) {
  const std::uint64_t seed = support::printed_seed();
  WaitGroup all, over;
  std::atomic<long> ran{0};
  long started = 0;
  over.add(1);
  PlainThread thread([&] {
    base::Random random(seed);
    for (int round = 0; round < scaled(6000); ++round) {
      const std::uint32_t burst = 1 + random.next() % 20;
      for (std::uint32_t i = 0; i < burst; ++i) {
        ++started;
        all.go([&ran] {
          ran.fetch_add(1, std::memory_order_relaxed);
          yield();
        });
      }
      all.wait();  // blocks the thread until the runtime has run dry
    }
    over.done();
  });
  over.wait();
  thread.join();
  EXPECT_EQ(ran, started);
}

// One goroutine starts others and then computes: they only run if another thread is woken.
RT_TEST(StressWakeUp, WorkPublishedByOneThatComputesIsFoundByOthers) {
  if (procs() == 1) return;  // nobody else
  for (int round = 0; round < scaled(6000); ++round) {
    std::atomic<int> ran{0};
    WaitGroup all;
    const int count = 1 + round % 5;
    for (int i = 0; i < count; ++i) all.go([&ran] { ran.fetch_add(1); });
    while (ran.load(std::memory_order_acquire) < count) std::this_thread::yield();
    all.wait();
  }
}

RT_TEST(StressWakeUp, JoinersAndFinishersNeverMissEachOther) {
  WaitGroup all;
  for (int i = 0; i < 8; ++i) {
    all.go([] {
      for (int round = 0; round < scaled(100'000); ++round) {
        auto handle = spawn([round] {
          for (int k = round % 3; k > 0; --k) yield();
          return round;
        });
        for (int k = round % 4; k > 0; --k) yield();  // or it would be run in place
        ASSERT_EQ(handle.join(), round);
      }
    });
  }
  all.wait();
}

// Everybody waits for the last one, again and again.
RT_TEST(StressWakeUp, ABarrierOfWaitGroupsReleasesAllEachRound) {
  constexpr int kGoroutines = 20;
  const int rounds = scaled(20'000);
  std::vector<WaitGroup> arrived(static_cast<std::size_t>(rounds));
  for (WaitGroup& group : arrived) group.add(kGoroutines);
  WaitGroup all;
  std::atomic<long> steps{0};
  for (int i = 0; i < kGoroutines; ++i) {
    all.go([&] {
      for (WaitGroup& group : arrived) {
        steps.fetch_add(1);
        group.done();
        group.wait();
      }
    });
  }
  all.wait();
  EXPECT_EQ(steps, long{rounds} * kGoroutines);
}

}  // namespace
}  // namespace magpie
