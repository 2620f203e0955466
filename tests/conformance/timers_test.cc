// timers_test.cc: after, after_func, Timer and Ticker, rule by rule.

#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using support::eventually;

RT_TEST(After, SendsTheTimeOnceAndNotTooEarly) {
  auto start = steady_clock::now();
  Chan<TimePoint> channel = after(2ms);
  std::optional<TimePoint> fired = channel.recv();
  ASSERT_TRUE(fired.has_value());
  EXPECT_GE(*fired, start + 2ms);
  EXPECT_LE(*fired, steady_clock::now());
  EXPECT_EQ(channel.try_recv(), std::nullopt);
}

RT_TEST(After, OfZeroOrLessFiresAtOnce) {
  for (auto duration : {0ns, -1ns, std::chrono::nanoseconds::min()}) {
    EXPECT_TRUE(after(duration).recv().has_value());
  }
}

RT_TEST(After, OfADurationTooLongToCountNeverFires) {
  for (int i = 0; i < 3; ++i) {
    Chan<TimePoint> channel = after(std::chrono::hours::max());
    EXPECT_EQ(channel.try_recv(), std::nullopt);
  }
  EXPECT_EQ(stats().timers, 0U);
}

RT_TEST(After, WorksInSelect) {
  Chan<int> never;
  Chan<TimePoint> time = after(1ms);
  std::size_t chosen =
      select(on_recv(never, [](std::optional<int>) {}),
             on_recv(time, [](std::optional<TimePoint> t) { EXPECT_TRUE(t.has_value()); }));
  EXPECT_EQ(chosen, 1U);
}

TEST(After, WithoutARuntimeThrows) {
  EXPECT_THROW((void)after(1ms), std::logic_error);
  EXPECT_THROW(after_func(1ms, [] {}), std::logic_error);
  EXPECT_THROW(Ticker ticker(1ms), std::logic_error);
}

TEST(After, WorksFromAPlainThreadWhileTheRuntimeRuns) {
  run(Options{.procs = 2}, [] {
    support::PlainThread thread([] {
      EXPECT_TRUE(after(1ms).recv().has_value());
      Timer stopped(1h);
      EXPECT_TRUE(stopped.stop());
    });
  });
}

RT_TEST(Timer, AHandleThatWasMovedFromNamesNone) {
  Timer timer(1h);
  Timer moved = std::move(timer);
  EXPECT_EQ(timer.channel(), Chan<TimePoint>::nil());
  EXPECT_FALSE(timer.stop());
  EXPECT_THROW(timer.reset(1ms), std::logic_error);
  EXPECT_TRUE(moved.stop());

  Ticker ticker(1h);
  Ticker moved_ticker = std::move(ticker);
  EXPECT_EQ(ticker.channel(), Chan<TimePoint>::nil());
  ticker.stop();
  EXPECT_THROW(ticker.reset(1ms), std::logic_error);
  moved_ticker.stop();
  ticker = moved_ticker;
  EXPECT_EQ(ticker.channel(), moved_ticker.channel());
}

RT_TEST(Timer, StoppedBeforeItFiresSendsNothing) {
  Timer timer(1h);
  EXPECT_TRUE(timer.stop());
  EXPECT_FALSE(timer.stop());
  EXPECT_EQ(timer.channel().try_recv(), std::nullopt);
  EXPECT_EQ(stats().timers, 0U);
}

RT_TEST(Timer, WhoseTimeNeverComesIsStoppedLikeAnyOther) {
  Timer timer(std::chrono::hours::max());
  EXPECT_TRUE(timer.stop());
  EXPECT_FALSE(timer.stop());
  EXPECT_FALSE(timer.reset(std::chrono::hours::max()));
  EXPECT_TRUE(timer.reset(1h));
  EXPECT_TRUE(timer.reset(std::chrono::hours::max()));
  EXPECT_TRUE(timer.stop());
}

RT_TEST(Timer, StoppedAfterItsValueWasReceivedSaysSo) {
  Timer timer(0s);
  EXPECT_TRUE(timer.channel().recv().has_value());
  EXPECT_FALSE(timer.stop());
}

RT_TEST(Timer, StoppedAfterItFiredTakesTheValueBack) {
  for (bool asked_before : {true, false}) {
    Timer timer(0s);
    if (asked_before) (void)timer.channel();
    std::uint64_t fired = stats().total.timers_fired;
    Timer later(0s);
    EXPECT_TRUE(eventually(
        [&] { return later.channel().size() == 1 || stats().total.timers_fired > fired; }));
    EXPECT_TRUE(later.channel()
                    .recv()
                    .has_value());  // so the first one has fired too, at one proc and any other
    EXPECT_TRUE(eventually([&] { return timer.channel().size() == 1; }));
    EXPECT_TRUE(timer.stop());
    EXPECT_EQ(timer.channel().try_recv(), std::nullopt);
    EXPECT_FALSE(timer.stop());
  }
}

RT_TEST(Timer, AskedForItsChannelAfterItFiredHasTheValueThere) {
  std::uint64_t fired = stats().total.timers_fired;
  Timer timer(0s);
  EXPECT_TRUE(eventually([&] { return stats().total.timers_fired > fired; }));
  EXPECT_TRUE(timer.channel().recv().has_value());
}

RT_TEST(Timer, ResetStartsItAgain) {
  Timer timer(1h);
  EXPECT_TRUE(timer.reset(1ms));
  EXPECT_TRUE(timer.channel().recv().has_value());
  EXPECT_FALSE(timer.reset(0s));
  EXPECT_TRUE(timer.channel().recv().has_value());
}

RT_TEST(Timer, AfterResetOnlyTheNewTimeIsReceived) {
  Timer timer(0s);
  EXPECT_TRUE(eventually([&] { return timer.channel().size() == 1; }));
  auto before_reset = steady_clock::now();
  EXPECT_TRUE(timer.reset(1ms));
  EXPECT_GE(*timer.channel().recv(), before_reset + 1ms);
}

// The timer fires while it is stopped, again and again: either stop() was in time or the value is
// received.
RT_TEST(Timer, EachStartEndsInAStopOrInAValueNeverInBoth) {
  int rounds = support::scaled(3000);
  Timer timer(1h);
  Chan<TimePoint> channel = timer.channel();
  timer.stop();
  for (int i = 0; i < rounds; ++i) {
    timer.reset(std::chrono::microseconds(i % 7));
    for (int k = i % 5; k > 0; --k) yield();
    if (i % 3 == 0) {
      std::optional<TimePoint> received = channel.try_recv();
      ASSERT_NE(timer.stop(), received.has_value());
    } else {
      ASSERT_TRUE(timer.stop());  // nobody received it
    }
    ASSERT_EQ(channel.try_recv(), std::nullopt);
  }
}

RT_TEST(Timer, NoStaleValueComesAfterStopWhileOthersReceive) {
  int rounds = support::scaled(1500);
  for (int i = 0; i < rounds; ++i) {
    Timer timer(std::chrono::microseconds(i % 11));
    Chan<TimePoint> channel = timer.channel();
    std::atomic<int> received{0};
    Chan<void> stop;
    WaitGroup receiver;
    receiver.go([&] {
      for (;;) {
        bool over = false;
        select(on_recv(channel, [&](std::optional<TimePoint>) { ++received; }),
               on_recv(stop, [&](bool) { over = true; }));
        if (over) return;
      }
    });
    if (i % 2 == 0) yield();
    bool stopped = timer.stop();
    stop.close();
    receiver.wait();
    ASSERT_EQ(received, stopped ? 0 : 1);
  }
}

RT_TEST(Timer, ManyAtOnceMayResetAndStopIt) {
  Timer timer(1h);
  WaitGroup all;
  for (int i = 0; i < 4; ++i) {
    all.go([&, i] {
      for (int k = 0; k < support::scaled(1000); ++k) {
        if ((i + k) % 3 == 0) {
          timer.stop();
        } else {
          timer.reset(std::chrono::microseconds(k % 5));
        }
        if (k % 8 == 0) yield();
      }
    });
  }
  all.wait();
  timer.stop();
  EXPECT_EQ(timer.channel().try_recv(), std::nullopt);
  EXPECT_EQ(stats().timers, 0U);
}

RT_TEST(Timer, IsSharedByItsCopies) {
  Timer timer(1h);
  Timer copy = timer;
  EXPECT_TRUE(copy.stop());
  EXPECT_FALSE(timer.stop());
  EXPECT_TRUE(copy.channel() == timer.channel());
}

RT_TEST(Timer, WhoseHandlesAreGoneStillSends) {
  Chan<TimePoint> channel = Timer(1ms).channel();
  EXPECT_TRUE(channel.recv().has_value());
}

RT_TEST(Timer, ThatNobodyCanHearIsGoneWithItsLastHandle) {
  { Timer timer(1h); }
  EXPECT_EQ(stats().timers, 0U);
}

RT_TEST(Timer, AHundredThousandAreStoppedOrFire) {
  int count = support::scaled(100'000);
  std::vector<Timer> timers;
  for (int i = 0; i < count; ++i)
    timers.emplace_back(i % 2 == 0 ? std::chrono::seconds(3600 + i % 100) : 1s * 0);
  int stopped = 0;
  for (Timer& timer : timers) stopped += timer.stop() ? 1 : 0;
  EXPECT_EQ(stopped, count);  // nobody received any
  EXPECT_EQ(stats().timers, 0U);
}

// They are fired in batches, and the next batch waits for the last. The loops keep every queue full
// meanwhile.
RT_TEST(Timer, MassesThatAreDueTogetherFireBesideGoroutinesThatAlwaysYield) {
  std::atomic<bool> stop{false};
  WaitGroup loops, sleepers;
  for (int i = 0; i < 100; ++i) {
    loops.go([&] {
      while (!stop.load()) yield();
    });
  }
  const auto due = steady_clock::now() + 5ms;
  std::atomic<int> early{0};
  for (int i = 0; i < 2'000; ++i) {
    sleepers.go([&] {
      sleep_until(due);
      if (steady_clock::now() < due) ++early;
    });
  }
  std::vector<Chan<TimePoint>> channels;  // these wake nobody when they fire
  for (int i = 0; i < 500; ++i) channels.push_back(after(due - steady_clock::now()));
  sleepers.wait();
  for (auto& channel : channels) EXPECT_TRUE(channel.recv().has_value());
  EXPECT_EQ(early.load(), 0);
  stop.store(true);
  loops.wait();
}

RT_TEST(Timer, WhoseChannelSomebodyClosesFiresInVain) {
  Timer timer(1ms);
  timer.channel().close();
  Ticker ticker(1ms);
  ticker.channel().close();
  sleep_for(5ms);
}

TEST(Timer, OutlivesTheRuntime) {
  std::optional<Timer> timer;
  std::optional<Ticker> ticker;
  run(Options{.procs = 2}, [&] {
    timer.emplace(1h);
    ticker.emplace(1h);
  });
  EXPECT_FALSE(timer->stop());
  EXPECT_THROW(timer->reset(1ms), std::logic_error);
  run(Options{.procs = 2}, [&] {
    timer->reset(1ms);
    EXPECT_TRUE(timer->channel().recv().has_value());
  });
}

RT_TEST(AfterFunc, CallsItsFunctionOnceInAGoroutineOfItsOwn) {
  Chan<std::uint64_t> caller;
  Timer timer = after_func(1ms, [caller] { caller.send(goroutine_id()); });
  std::uint64_t id = *caller.recv();
  EXPECT_NE(id, 0U);
  EXPECT_NE(id, goroutine_id());
  EXPECT_FALSE(timer.stop());
  EXPECT_EQ(timer.channel().capacity(), 0U);
  EXPECT_TRUE(timer.channel() == Chan<TimePoint>::nil());
}

RT_TEST(AfterFunc, StoppedInTimeIsNotCalled) {
  std::atomic<bool> called{false};
  Timer timer = after_func(1h, [&] { called = true; });
  EXPECT_TRUE(timer.stop());
  EXPECT_FALSE(timer.stop());
  EXPECT_FALSE(called);
}

RT_TEST(AfterFunc, IsCalledAgainAfterReset) {
  Chan<void> calls;
  Timer timer = after_func(0s, [calls] { calls.send(); });
  calls.recv();
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(timer.reset(100us));
    calls.recv();
  }
}

RT_TEST(AfterFunc, TakesAMoveOnlyFunctionAndDestroysItWhenNobodyNeedsItAnyMore) {
  auto owned = std::make_shared<int>(7);
  std::weak_ptr<int> watched = owned;
  Chan<int> result;
  (void)after_func(0s, [mine = std::make_unique<std::shared_ptr<int>>(std::move(owned)), result] {
    result.send(**mine);
  });
  EXPECT_EQ(result.recv(), 7);
  EXPECT_TRUE(eventually([&] { return watched.expired(); }));
}

TEST(AfterFunc, ThatNeverCameIsDestroyedWithTheRuntime) {
  auto owned = std::make_shared<int>(7);
  run([owned] { (void)after_func(1h, [owned] {}); });
  EXPECT_EQ(owned.use_count(), 1);
}

RT_TEST(AfterFunc, EachStartIsEitherStoppedOrCalled) {
  std::atomic<int> called{0};
  int stopped = 0;
  int rounds = support::scaled(2000);
  for (int i = 0; i < rounds; ++i) {
    Timer timer = after_func(std::chrono::microseconds(i % 9), [&] { ++called; });
    for (int k = i % 4; k > 0; --k) yield();
    if (timer.stop()) ++stopped;
  }
  EXPECT_TRUE(eventually([&] { return called + stopped == rounds; })) << called << " + " << stopped;
}

RT_TEST(Ticker, TicksAgainAndAgainNotTooEarly) {
  auto start = steady_clock::now();
  Ticker ticker(1ms);
  TimePoint last = start;
  for (int i = 1; i <= 5; ++i) {
    TimePoint tick = *ticker.channel().recv();
    EXPECT_GE(tick, start + i * 1ms);
    EXPECT_GT(tick, last);
    last = tick;
  }
}

RT_TEST(Ticker, LeavesOutTicksThatNobodyReceived) {
  Ticker ticker(100us);
  std::uint64_t fired = stats().total.timers_fired;
  EXPECT_TRUE(eventually([&] { return stats().total.timers_fired > fired + 5; }));
  EXPECT_EQ(ticker.channel().size(), 1U);
}

RT_TEST(Ticker, AfterStopNoTickIsReceived) {
  Ticker ticker(50us);
  Chan<TimePoint> channel = ticker.channel();
  for (int i = 0; i < support::scaled(200); ++i) {
    channel.recv();
    ticker.stop();
    ASSERT_EQ(channel.try_recv(), std::nullopt);
    yield();
    ASSERT_EQ(channel.try_recv(), std::nullopt);
    ticker.reset(50us);
  }
}

// A stop() that meets the next tick as it fires takes the one before it back all the same.
RT_TEST(Ticker, AfterStopOrResetNoEarlierTickIsReceivedAlsoIfTheNextFiresMeanwhile) {
  constexpr int kTickers = 64;  // fire as one batch
  for (int round = 0; round < support::scaled(300); ++round) {
    std::vector<Ticker> tickers;
    std::vector<Chan<TimePoint>> channels;
    for (int i = 0; i < kTickers; ++i) {
      tickers.emplace_back(100us);
      channels.push_back(tickers.back().channel());
    }
    // The P is busy, others fire; until about the third tick.
    auto until = steady_clock::now() + 290us + std::chrono::microseconds(round % 30);
    while (steady_clock::now() < until) {
    }
    for (std::size_t i = kTickers; i-- > 0;) {
      if (i % 2 == 0) {
        tickers[i].stop();
      } else {
        tickers[i].reset(1h);
      }
      ASSERT_FALSE(channels[i].try_recv()) << "round " << round;
    }
  }
}

RT_TEST(Ticker, ResetChangesThePeriod) {
  Ticker ticker(1h);
  auto start = steady_clock::now();
  ticker.reset(500us);
  EXPECT_GE(*ticker.channel().recv(), start + 500us);
  EXPECT_GE(*ticker.channel().recv(), start + 1ms);
}

RT_TEST(Ticker, WithAPeriodThatIsNotPositiveIsRefused) {
  EXPECT_THROW(Ticker(0s), std::invalid_argument);
  EXPECT_THROW(Ticker(-1s), std::invalid_argument);
  Ticker ticker(1h);
  EXPECT_THROW(ticker.reset(0s), std::invalid_argument);
}

RT_TEST(Ticker, StopsWithItsLastHandle) {
  Chan<TimePoint> channel = [] {
    Ticker ticker(100us);
    Ticker copy = ticker;
    return copy.channel();
  }();
  EXPECT_TRUE(eventually([] { return stats().timers == 0; }));
}

// It is destroyed when run() ends, by a thread that is no goroutine any more.
TEST(AfterFunc, WhatItsFunctionCapturedMayUseTheRuntimeAsRunEnds) {
  struct UsesRuntime {
    Context context = Context::background().with_cancel();
    ~UsesRuntime() {
      EXPECT_EQ(goroutine_id(), 0U);
      context.cancel();
      yield();
      sleep_for(1us);
      TaskGroup group;
      EXPECT_THROW(go([] {}), std::logic_error);
    }
  };
  run([] { after_func(1h, [uses = std::make_shared<UsesRuntime>()] {}); });
}

}  // namespace
}  // namespace magpie
