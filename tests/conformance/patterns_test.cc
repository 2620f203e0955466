// patterns_test.cc: worker pools, rate limits and circuit breakers.

#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <stdexcept>
#include <thread>

#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using support::eventually;

RT_TEST(WorkerPool, DoesEverythingThatWasSubmitted) {
  std::atomic<int> done{0};
  WorkerPool pool(4, 16);
  int jobs = support::scaled(2000);
  for (int i = 0; i < jobs; ++i) pool.submit([&] { ++done; });
  pool.wait();
  EXPECT_EQ(done, jobs);
}

RT_TEST(WorkerPool, RunsNoMoreJobsAtATimeThanItHasWorkers) {
  std::atomic<int> running{0}, most{0};
  WorkerPool pool(3, 100);
  for (int i = 0; i < support::scaled(300); ++i) {
    pool.submit([&] {
      int now = ++running;
      int seen = most;
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      yield();
      --running;
    });
  }
  pool.wait();
  EXPECT_LE(most, 3);
}

// Fills the pool: its worker waits for the gate, and its queue is full.
struct FullPool {
  Chan<void> gate;
  std::atomic<int> done{0};
  WorkerPool pool{1, 2};

  FullPool() {
    std::atomic<bool> taken{false};
    pool.submit([&] {
      taken = true;
      gate.recv();
      ++done;
    });
    EXPECT_TRUE(eventually([&] { return taken.load(); }));
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(pool.try_submit([&] { ++done; }));
  }
};

RT_TEST(WorkerPool, TrySubmitRefusesWhenTheQueueIsFull) {
  FullPool full;
  EXPECT_EQ(full.pool.queued(), 2U);
  EXPECT_FALSE(full.pool.try_submit([] { ADD_FAILURE() << "ran"; }));
  EXPECT_FALSE(full.pool.try_submit_for(1ms, [] { ADD_FAILURE() << "ran"; }));
  full.gate.close();
  EXPECT_TRUE(full.pool.try_submit_for(1h, [&] { ++full.done; }));
  full.pool.wait();
  EXPECT_EQ(full.done, 4);
}

RT_TEST(WorkerPool, SubmitWaitsForRoom) {
  FullPool full;
  std::atomic<bool> submitted{false};
  WaitGroup submitter;
  submitter.go([&] {
    full.pool.submit([] {});
    submitted = true;
  });
  for (int i = 0; i < 10; ++i) yield();
  EXPECT_FALSE(submitted);
  full.gate.close();
  submitter.wait();
  full.pool.wait();
}

RT_TEST(WorkerPool, AfterCloseTakesNothingAndFinishesTheRest) {
  FullPool full;
  full.pool.close();
  full.pool.close();
  EXPECT_THROW(full.pool.submit([] {}), ClosedChannel);
  EXPECT_THROW(full.pool.try_submit([] {}), ClosedChannel);
  full.gate.close();
  full.pool.wait();
  EXPECT_EQ(full.done, 3);
}

RT_TEST(WorkerPool, AnExceptionOfAJobIsThrownByWaitAndHarmsNoOther) {
  std::atomic<int> done{0};
  WorkerPool pool(2, 4);
  for (int i = 0; i < 20; ++i) {
    pool.submit([&, i] {
      if (i == 5) throw std::runtime_error("five");
      ++done;
    });
  }
  EXPECT_THROW(pool.wait(), std::runtime_error);
  EXPECT_EQ(done, 19);
  pool.wait();  // thrown once
}

// More workers than a thread can start before main returns.
TEST(WorkerPoolAtTheEnd, WhoseWorkersAreDroppedWhileItStartsThemDoesNotWaitForThem) {
  std::thread maker;
  run([&] {
    maker = std::thread(
        [] { EXPECT_THROW(WorkerPool pool(std::numeric_limits<int>::max()), std::logic_error); });
    while (num_goroutines() < 10) yield();
  });
  maker.join();
}

RT_TEST(WorkerPool, ItsDestructorFinishesTheWork) {
  std::atomic<int> done{0};
  {
    WorkerPool pool(2, 100);
    for (int i = 0; i < 50; ++i)
      pool.submit([&, owned = std::make_unique<int>(1)] { done += *owned; });
  }
  EXPECT_EQ(done, 50);
}

RT_TEST(WorkerPool, TakesJobsFromPlainThreads) {
  std::atomic<int> done{0};
  WorkerPool pool(2, 1);
  {
    support::PlainThread thread([&] {
      for (int i = 0; i < 20; ++i) pool.submit([&] { ++done; });
    });
  }
  pool.wait();
  EXPECT_EQ(done, 20);
}

RT_TEST(WorkerPool, WithoutWorkersIsRefused) {
  EXPECT_THROW(WorkerPool(0, 1), std::invalid_argument);
  EXPECT_THROW(WorkerPool(-1, 1), std::invalid_argument);
}

RT_TEST(RateLimiter, AllowsABurstAndThenNothingAtOnce) {
  RateLimiter limiter(0.001, 5);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limiter.allow());
  EXPECT_FALSE(limiter.allow());
}

RT_TEST(RateLimiter, NeverLetsMoreThroughThanItsRateAndBurst) {
  constexpr double kRate = 2000;
  constexpr int kBurst = 10;
  RateLimiter limiter(kRate, kBurst);
  auto start = steady_clock::now();
  std::atomic<int> passed{0};
  WaitGroup all;
  for (int i = 0; i < 4; ++i) {
    all.go([&] {
      for (int k = 0; k < 10; ++k) {
        limiter.wait();
        ++passed;
      }
    });
  }
  all.wait();
  double seconds = std::chrono::duration<double>(steady_clock::now() - start).count();
  EXPECT_EQ(passed, 40);
  EXPECT_LE(40, kBurst + kRate * seconds + 1);
}

RT_TEST(RateLimiter, RefillsNoFurtherThanItsBurst) {
  RateLimiter limiter(1e6, 3);
  sleep_for(1ms);  // enough for a thousand tokens
  EXPECT_TRUE(limiter.allow(3));
  EXPECT_FALSE(limiter.allow(4));
}

RT_TEST(RateLimiter, WaitGivesUpWhenItsContextIsCancelled) {
  RateLimiter limiter(0.001, 1);
  EXPECT_TRUE(limiter.allow());
  Context context = Context::background().with_cancel();
  WaitGroup waiter;
  std::atomic<bool> passed{true};
  waiter.go([&] { passed = limiter.wait(context); });
  for (int i = 0; i < 10; ++i) yield();
  context.cancel();
  waiter.wait();
  EXPECT_FALSE(passed);
  EXPECT_FALSE(limiter.wait(context));
}

RT_TEST(RateLimiter, WaitGivesUpAtOnceWhenTheDeadlineIsTooEarly) {
  RateLimiter limiter(0.001, 1);
  EXPECT_TRUE(limiter.allow());
  auto start = steady_clock::now();
  EXPECT_FALSE(limiter.wait(Context::background().with_timeout(100s)));
  EXPECT_LT(steady_clock::now() - start, 50s);
}

RT_TEST(RateLimiter, ATokenOfOneWhoGaveUpIsThereForOthers) {
  RateLimiter limiter(2, 1);
  EXPECT_TRUE(limiter.allow());
  Context context = Context::background().with_cancel();
  WaitGroup waiters;
  for (int i = 0; i < 50; ++i) waiters.go([&] { limiter.wait(context); });
  EXPECT_TRUE(eventually([] { return stats().timers >= 45; }));
  context.cancel();
  waiters.wait();
  EXPECT_TRUE(limiter.wait(Context::background().with_timeout(15s)));  // not after 25 s
}

// A token comes every 100 s, so the turns are far apart and nobody really waits for one.
RT_TEST(RateLimiter, NobodyGetsTheTurnOfOneWhoStillWaits) {
  RateLimiter limiter(0.01, 2);
  EXPECT_TRUE(limiter.allow(2));
  Context first = Context::background().with_cancel(), second = Context::background().with_cancel();
  WaitGroup waiters;
  std::atomic<bool> first_gave_up{false}, refused{false};
  waiters.go([&] { first_gave_up = !limiter.wait(first); });  // at 100 s
  ASSERT_TRUE(eventually([] { return stats().timers == 1; }));
  waiters.go([&] { EXPECT_FALSE(limiter.wait(second)); });  // at 200 s
  ASSERT_TRUE(eventually([] { return stats().timers == 2; }));
  first.cancel();
  ASSERT_TRUE(eventually([&] { return first_gave_up.load(); }));
  // Two tokens do not fit where the first was: they come after the second, at 400 s and not at 300
  // s.
  Context in_350_s = second.with_timeout(350s);
  waiters.go([&] { refused = !limiter.wait(in_350_s, 2); });
  EXPECT_TRUE(eventually([&] { return refused.load(); }));
  second.cancel();
  waiters.wait();
}

RT_TEST(RateLimiter, AFullBucketHoldsItsBurstHoweverLongItTakesToFill) {
  struct Bucket {
    double rate;
    int burst;
  };
  for (Bucket bucket : {Bucket{1.0 / 86'400, 20'000}, {1e-9, 20}, {1e-300, 7}, {5e-324, 1}}) {
    RateLimiter limiter(bucket.rate, bucket.burst);
    int allowed = 0;
    while (allowed <= bucket.burst && limiter.allow()) ++allowed;
    EXPECT_EQ(allowed, bucket.burst) << bucket.rate;
  }
}

// A token comes every thirty years: soon the turns are further away than can be counted.
RT_TEST(RateLimiter, NobodyPassesAnEndlessLine) {
  RateLimiter limiter(1e-9, 1);
  EXPECT_TRUE(limiter.allow());
  Context context = Context::background().with_cancel();
  std::atomic<int> passed{0};
  WaitGroup waiters;
  for (int i = 0; i < 30; ++i) {
    waiters.go([&] {
      if (limiter.wait(context)) ++passed;
    });
  }
  EXPECT_TRUE(eventually([] { return stats().waiting >= 30; }));
  EXPECT_FALSE(limiter.allow());
  EXPECT_FALSE(limiter.wait(context.with_timeout(1h)));
  EXPECT_EQ(passed, 0);
  context.cancel();
  waiters.wait();
  EXPECT_EQ(passed, 0);
}

// A token comes every three hundred years, and time is counted in ticks of ten nanoseconds.
RT_TEST(RateLimiter, AWaitWithoutADeadlineWaitsHoweverFarAwayItsTurnIs) {
  RateLimiter limiter(1e-10, 1);
  EXPECT_TRUE(limiter.allow());
  Context context = Context::background().with_cancel();
  std::atomic<bool> is_cancelled{false};
  auto waiter = spawn([&] { return !limiter.wait(context) && is_cancelled; });
  EXPECT_TRUE(eventually([] { return stats().waiting >= 1 || num_goroutines() == 1; }));
  is_cancelled = true;
  context.cancel();
  EXPECT_TRUE(waiter.join());
}

RT_TEST(RateLimiter, SenselessNumbersAreRefused) {
  EXPECT_THROW(RateLimiter(0, 1), std::invalid_argument);
  EXPECT_THROW(RateLimiter(-1, 1), std::invalid_argument);
  EXPECT_THROW(RateLimiter(std::numeric_limits<double>::infinity(), 1), std::invalid_argument);
  EXPECT_THROW(RateLimiter(std::numeric_limits<double>::quiet_NaN(), 1), std::invalid_argument);
  EXPECT_THROW(RateLimiter(1, 0), std::invalid_argument);
  RateLimiter limiter(1, 2);
  EXPECT_THROW(limiter.wait(3), std::invalid_argument);
}

using State = CircuitBreaker::State;

int fail() { throw std::runtime_error("down"); }

RT_TEST(CircuitBreaker, OpensAfterSoManyFailuresInARow) {
  CircuitBreaker breaker({.failures = 3, .open_for = 1h, .trials = 1});
  for (int i = 0; i < 2; ++i) EXPECT_THROW(breaker.call(fail), std::runtime_error);
  EXPECT_EQ(breaker.call([] { return 7; }), 7);  // so the row is broken
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(breaker.state(), State::closed);
    EXPECT_THROW(breaker.call(fail), std::runtime_error);
  }
  EXPECT_EQ(breaker.state(), State::open);
  EXPECT_THROW(breaker.call([] { ADD_FAILURE() << "was called"; }), CircuitOpen);
}

RT_TEST(CircuitBreaker, IsTriedAgainAfterAWhileAndClosesWhenThatSucceeds) {
  CircuitBreaker breaker({.failures = 1, .open_for = 1ms, .trials = 2});
  EXPECT_THROW(breaker.call(fail), std::runtime_error);
  EXPECT_TRUE(eventually([&] { return breaker.state() == State::half_open; }));
  EXPECT_EQ(breaker.call([] { return 1; }), 1);
  EXPECT_EQ(breaker.state(), State::half_open);
  EXPECT_EQ(breaker.call([] { return 2; }), 2);
  EXPECT_EQ(breaker.state(), State::closed);
}

RT_TEST(CircuitBreaker, OpensAgainWhenATrialFails) {
  CircuitBreaker breaker({.failures = 1, .open_for = 1ms, .trials = 1});
  EXPECT_THROW(breaker.call(fail), std::runtime_error);
  EXPECT_TRUE(eventually([&] { return breaker.state() == State::half_open; }));
  EXPECT_THROW(breaker.call(fail), std::runtime_error);
  EXPECT_NE(breaker.state(), State::closed);
}

RT_TEST(CircuitBreaker, LetsOnlySoManyTrialsThroughWhileHalfOpen) {
  CircuitBreaker breaker({.failures = 1, .open_for = 0s, .trials = 1});
  breaker.record_failure();
  EXPECT_TRUE(breaker.allow());
  EXPECT_FALSE(breaker.allow());
  breaker.record_success();
  EXPECT_TRUE(breaker.allow());
}

// A breaker that is half open, with a call under way that began while it was closed.
struct HalfOpen {
  explicit HalfOpen(int trials) : breaker({.failures = 1, .open_for = 1ms, .trials = trials}) {
    EXPECT_TRUE(breaker.allow());  // the early one
    EXPECT_TRUE(breaker.allow());
    breaker.record_failure();  // of either: it opens
    EXPECT_TRUE(eventually([&] { return breaker.state() == State::half_open; }));
    EXPECT_TRUE(breaker.allow());  // the trial
  }
  CircuitBreaker breaker;
};

RT_TEST(CircuitBreaker, AnEarlierCallThatSucceedsDoesNotCloseIt) {
  HalfOpen half_open(1);
  half_open.breaker.record_success();
  EXPECT_EQ(half_open.breaker.state(), State::half_open);
  half_open.breaker.record_success();  // the trial
  EXPECT_EQ(half_open.breaker.state(), State::closed);
}

RT_TEST(CircuitBreaker, AnEarlierCallThatFailsDoesNotOpenIt) {
  HalfOpen half_open(1);
  half_open.breaker.record_failure();
  EXPECT_FALSE(half_open.breaker.allow());  // the trial is under way
  half_open.breaker.record_success();       // the trial
  EXPECT_EQ(half_open.breaker.state(), State::closed);
}

RT_TEST(CircuitBreaker, ATrialThatFailsAfterAnEarlierCallSucceededOpensIt) {
  HalfOpen half_open(2);
  half_open.breaker.record_success();
  half_open.breaker.record_failure();  // the trial
  EXPECT_TRUE(eventually([&] { return half_open.breaker.allow(); }));
  EXPECT_TRUE(half_open.breaker.allow());  // both trials are to be had again
  EXPECT_FALSE(half_open.breaker.allow());
}

// With call() each result belongs to its call, in whatever order they end.
RT_TEST(CircuitBreaker, ACallThatBeganBeforeItOpenedMayEndLast) {
  CircuitBreaker breaker({.failures = 1, .open_for = 1ms, .trials = 1});
  Chan<void> gate;
  std::atomic<bool> began{false};
  auto early = spawn([&] {
    breaker.call([&] {
      began = true;
      gate.recv();
      throw 1;
    });
  });
  EXPECT_TRUE(eventually([&] { return began.load(); }));
  EXPECT_THROW(breaker.call(fail), std::runtime_error);
  EXPECT_TRUE(eventually([&] { return breaker.state() == State::half_open; }));
  EXPECT_EQ(breaker.call([] { return 1; }), 1);
  EXPECT_EQ(breaker.state(), State::closed);
  gate.close();
  EXPECT_THROW(early.join(), int);
  EXPECT_EQ(breaker.state(), State::closed);
}

TEST(CircuitBreaker, ForgetsATrialThatWasDroppedWhenItsRunEnded) {
  CircuitBreaker breaker({.failures = 1, .open_for = 0ns, .trials = 1});
  breaker.record_failure();
  for (const bool by_call : {true, false}) {
    run([&] {
      Chan<void> never;
      go([&breaker, by_call, never] {
        if (by_call) {
          breaker.call([&] { never.recv(); });
        } else if (breaker.allow()) {
          never.recv();
        }
      });
      ASSERT_TRUE(eventually([] { return stats().waiting == 1; }));
      EXPECT_FALSE(breaker.allow()) << "a trial is under way";
    });
    EXPECT_EQ(breaker.state(), CircuitBreaker::State::half_open);
  }
  EXPECT_TRUE(breaker.allow());
  breaker.record_success();
  EXPECT_EQ(breaker.state(), CircuitBreaker::State::closed);
}

RT_TEST(CircuitBreaker, ReturnsReferencesAndMoveOnlyValues) {
  CircuitBreaker breaker;
  int number = 1;
  breaker.call([&]() -> int& { return number; }) = 5;
  EXPECT_EQ(number, 5);
  EXPECT_EQ(*breaker.call([] { return std::make_unique<int>(3); }), 3);
}

RT_TEST(CircuitBreaker, SenselessOptionsAreRefused) {
  EXPECT_THROW(CircuitBreaker({.failures = 0, .open_for = 1s, .trials = 1}), std::invalid_argument);
  EXPECT_THROW(CircuitBreaker({.failures = 1, .open_for = -1s, .trials = 1}),
               std::invalid_argument);
  EXPECT_THROW(CircuitBreaker({.failures = 1, .open_for = 1s, .trials = 0}), std::invalid_argument);
}

}  // namespace
}  // namespace magpie
