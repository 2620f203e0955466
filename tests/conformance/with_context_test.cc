// with_context_test.cc: what all waits with a Context promise, and what is special to some.
#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <magpie/process.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>

#include "support/cancellable.h"
#include "support/plain_thread.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::all_cancellable;
using support::all_cancellable_outside;
using support::Cancellable;
using support::cancellable;
using support::eventually;
using support::expect_granted;
using support::kCancelled;
using support::kTimedOut;
using support::over;

RT_TEST(WithContext, OneThatIsOverFailsACallBeforeItIsTried) {
  for (const Cancellable& operation : all_cancellable()) {
    operation.grant();
    std::error_code error;
    EXPECT_FALSE(operation.call(over(), error)) << operation.name;
    EXPECT_EQ(error, kCancelled) << operation.name;
    expect_granted(operation);
  }
}

RT_TEST(WithContext, ACallThatNeedNotWaitSucceedsWhileItIsAlive) {
  Context context = cancellable();
  for (const Cancellable& operation : all_cancellable()) {
    operation.grant();
    std::error_code error = kCancelled;
    EXPECT_TRUE(operation.call(context, error)) << operation.name;
    EXPECT_FALSE(error) << operation.name;
    operation.undo();
  }
}

RT_TEST(WithContext, CancellingEndsACallThatWaitsAndNothingIsLost) {
  for (const Cancellable& operation : all_cancellable()) {
    Context context = cancellable();
    std::size_t waiting = stats().waiting;
    auto waiter = spawn([&] {
      std::error_code error;
      EXPECT_FALSE(operation.call(context, error)) << operation.name;
      return error;
    });
    ASSERT_TRUE(eventually([&] { return stats().waiting > waiting; })) << operation.name;
    context.cancel();
    EXPECT_EQ(waiter.join(), kCancelled) << operation.name;
    operation.grant();
    expect_granted(operation);
  }
}

RT_TEST(WithContext, ACallThatWaitsIsServedAsWithout) {
  for (const Cancellable& operation : all_cancellable()) {
    Context context = cancellable().with_timeout(1h);
    std::size_t waiting = stats().waiting;
    auto waiter = spawn([&] {
      std::error_code error = kCancelled;
      EXPECT_TRUE(operation.call(context, error)) << operation.name;
      return error;
    });
    ASSERT_TRUE(eventually([&] { return stats().waiting > waiting; })) << operation.name;
    operation.grant();
    EXPECT_FALSE(waiter.join()) << operation.name;
    context.cancel();  // meets nobody
    operation.undo();
  }
}

RT_TEST(WithContext, ADeadlineEndsACallThatWaits) {
  for (const Cancellable& operation : all_cancellable()) {
    std::error_code error;
    EXPECT_FALSE(operation.call(Context::background().with_timeout(1ms), error)) << operation.name;
    EXPECT_EQ(error, kTimedOut) << operation.name;
    operation.grant();
    expect_granted(operation);
  }
}

RT_TEST(WithContext, WhatIsThrownSaysWhyAndNamesTheCall) {
  for (const Cancellable& operation : all_cancellable()) {
    Context late = Context::background().with_timeout(1ms);
    for (const Context& context : {late, over()}) {
      try {
        operation.call_or_throw(context);
        ADD_FAILURE() << operation.name << " has not thrown";
      } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), context.err()) << operation.name;
        EXPECT_NE(std::string(error.what()).find(operation.name), std::string::npos)
            << error.what();
      }
    }
    operation.grant();
    operation.call_or_throw(late.background());
    operation.undo();
  }
}

TEST(WithContext, WorksOnPlainThreadsWithoutARuntime) {
  for (const Cancellable& operation : all_cancellable_outside()) {
    Context context = cancellable();
    std::error_code error;
    std::thread waiter([&] { EXPECT_FALSE(operation.call(context, error)) << operation.name; });
    std::thread canceller([&] { context.cancel(); });
    waiter.join();
    canceller.join();
    EXPECT_EQ(error, kCancelled) << operation.name;
    operation.grant();
    expect_granted(operation);
  }
}

TEST(WithContext, ADeadlineCountsAfterTheRunThatItWasMadeIn) {
  std::optional<Context> soon, child;
  run([&] {
    soon = Context::background().with_timeout(20ms);
    child = soon->with_cancel();
  });
  Chan<int> never;
  std::error_code error;
  EXPECT_EQ(never.recv(*child, error), std::nullopt);  // on a plain thread
  EXPECT_EQ(error, kTimedOut);
  EXPECT_EQ(child->err(), kTimedOut);
  run([&] {  // of another run(), in a goroutine
    EXPECT_EQ(never.recv(*soon, error), std::nullopt);
    EXPECT_EQ(error, kTimedOut);
  });
}

TEST(WithContext, MakingOneFromAnotherWhoseDeadlineNobodyWatchedEndsThat) {
  using Make = Context (*)(const Context&);
  for (Make make : {Make([](const Context& from) { return from.with_cancel(); }),
                    Make([](const Context& from) { return from.with_value(1, 2); }),
                    Make([](const Context& from) { return from.with_timeout(1h); })}) {
    std::optional<Context> soon;
    std::stop_token asked;
    run([&] {
      soon = Context::background().with_timeout(20ms);
      asked = soon->stop_token();
    });
    std::this_thread::sleep_until(*soon->deadline());
    run([&] {
      EXPECT_EQ(make(*soon).err(), kTimedOut);
      EXPECT_TRUE(asked.stop_requested());
    });
  }
}

TEST(WithContext, ADeadlineOfAnEarlierRunEndsAWaitInALaterOne) {
  std::optional<Context> soon;
  run([&] { soon = Context::background().with_timeout(50ms); });
  run([&] {
    EXPECT_THROW(Chan<int>().recv(*soon), std::system_error);
    EXPECT_EQ(soon->err(), kTimedOut);
  });
}

TEST(WithContext, GoroutinesThatWereDroppedAreNotTouchedByALaterCancel) {
  Context context = cancellable();
  Semaphore units(0);
  Chan<int> never;
  Mutex mutex;
  mutex.lock();
  run([&] {
    for (int i = 0; i < 10; ++i) {
      go([&] { units.acquire(context); });
      go([&] { (void)never.recv(context); });
      go([&] { mutex.lock(context); });
    }
    ASSERT_TRUE(eventually([] { return stats().waiting == 30; }));
  });
  std::thread waiter([&] { EXPECT_THROW(units.acquire(context), std::system_error); });
  context.cancel();
  waiter.join();
  run([&] { EXPECT_THROW(units.acquire(context), std::system_error); });
}

TEST(WithContext, APlainThreadThatJoinsIsToldOfTheEndOfTheRun) {
  Context context = cancellable();
  JoinHandle<void> endless;
  std::thread joiner;
  run([&] {
    endless = spawn([] { (void)Chan<int>::nil().recv(); });
    joiner = std::thread([&] { EXPECT_THROW(endless.join(context), std::logic_error); });
  });
  joiner.join();
  context.cancel();
}

RT_TEST(WithContext, CancellingEndsAThousandWaits) {
  Context top = cancellable();
  Chan<int> never;
  WaitGroup waiters;
  std::atomic<int> cancelled{0};
  for (int i = 0; i < 1000; ++i) {
    waiters.go([&, context = i % 2 == 0 ? top : top.with_value(i, i)] {
      std::error_code error;
      (void)never.recv(context, error);
      if (error == kCancelled) cancelled.fetch_add(1);
    });
  }
  ASSERT_TRUE(eventually([] { return stats().waiting == 1000; }));
  top.cancel();
  waiters.wait();
  EXPECT_EQ(cancelled.load(), 1000);
}

RT_TEST(WithContext, ASleepEndsEarlyByItAndOtherwiseInTime) {
  using std::chrono::steady_clock;
  Context context = cancellable();
  auto start = steady_clock::now();
  sleep_for(2ms, context);
  sleep_until(start + 3ms, context);
  EXPECT_GE(steady_clock::now(), start + 3ms);
  sleep_for(-1s, context);
  auto sleeper = spawn([&] { sleep_for(24h, context); });
  ASSERT_TRUE(eventually([] { return stats().waiting == 1; }));
  context.cancel();
  EXPECT_THROW(sleeper.join(), std::system_error);
  std::error_code error;
  EXPECT_FALSE(sleep_until(start, context, error));
  EXPECT_EQ(error, kCancelled);
  EXPECT_FALSE(sleep_for(24h, Context::background().with_timeout(1ms), error));
  EXPECT_EQ(error, kTimedOut);
  EXPECT_TRUE(sleep_for(1us, Context::background(), error));
  EXPECT_FALSE(error);
}

// ---- what closes, or is asked to stop, at a deadline whose run() has ended

TEST(WithContext, AThreadThatWaitsForDoneIsWokenAtADeadlineWhoseRunEndedMeanwhile) {
  for (bool selects : {false, true}) {
    std::optional<Context> soon;
    std::optional<std::thread> waiter;
    std::atomic<bool> begins{false}, woken{false};
    run([&] {
      soon = Context::background().with_timeout(100ms);
      Chan<void> done = soon->done();
      waiter.emplace([&, done] {
        begins = true;
        if (selects) {
          select(on_recv(done), on_recv(Chan<int>()));
        } else {
          EXPECT_FALSE(done.recv());
        }
        woken = true;
      });
      while (!begins) yield();
    });
    EXPECT_TRUE(support::eventually([&] { return woken.load(); })) << selects;
    if (!woken) soon->cancel();
    waiter->join();
    EXPECT_EQ(soon->err(), kTimedOut);
    EXPECT_GE(std::chrono::steady_clock::now(), *soon->deadline());
  }
}

TEST(WithContext, DoneClosesInALaterRunAtTheDeadlineOfAnEarlierOne) {
  for (bool selects : {false, true}) {
    std::optional<Context> soon, child;
    Chan<void> done = Chan<void>::nil();
    run([&] {
      soon = Context::background().with_timeout(50ms);
      child = soon->with_cancel();
      done = child->done();
    });
    run([&] {
      auto waiter = spawn([&] {
        if (selects) {
          select(on_recv(done), on_recv(Chan<int>()), on_timeout(1h));
        } else {
          (void)done.recv();
        }
      });
      bool ended = waiter.try_join_for(support::kGenerousLimit);
      EXPECT_TRUE(ended) << selects;
      EXPECT_EQ(child->err(), kTimedOut);
      if (!ended) child->cancel();
    });
  }
}

TEST(WithContext, ATimeoutEndsAReceiveFromDoneBeforeTheDeadline) {
  std::optional<Context> late;
  run([&] { late = Context::background().with_timeout(1h); });
  EXPECT_FALSE(late->done().try_recv_for(1us));  // on a plain thread
  EXPECT_EQ(select(on_recv(late->done()), on_timeout(1us)), 1u);
  EXPECT_EQ(select(on_recv(late->done()), otherwise()), 1u);
  std::error_code error;
  Context cancelled = cancellable();
  run([&] {
    EXPECT_FALSE(late->done().try_recv_for(1us));
    EXPECT_EQ(select(on_recv(late->done()), on_timeout(1us)), 1u);
    go([&] { cancelled.cancel(); });
    EXPECT_FALSE(late->done().recv(cancelled, error));
    EXPECT_EQ(error, kCancelled);
  });
  EXPECT_FALSE(late->cancelled());
}

TEST(WithContext, AStopTokenOfALaterRunIsAskedAtTheDeadlineOfAnEarlierOne) {
  std::optional<Context> soon, child;
  run([&] {
    soon = Context::background().with_timeout(50ms);
    child = soon->with_cancel();
  });
  run([&] {
    Chan<void> called;
    AfterFunc function = child->after_func([=] { called.close(); });
    EXPECT_FALSE(called.try_recv_for(support::kGenerousLimit));
    EXPECT_TRUE(called.closed());
    EXPECT_EQ(child->err(), kTimedOut);
    EXPECT_TRUE(child->stop_token().stop_requested());
  });
}

TEST(WithContext, AReadInALaterRunEndsAtTheDeadlineOfAnEarlierOne) {
  std::optional<Context> soon;
  run([&] { soon = Context::background().with_timeout(50ms); });
  run([&] {
    net::Pipe pipe = net::pipe();
    auto reader = spawn([&] {
      std::byte byte;
      std::error_code error;
      (void)pipe.reader.read({&byte, 1}, *soon, error);
      return error;
    });
    std::optional<std::error_code> error = reader.try_join_for(support::kGenerousLimit);
    EXPECT_EQ(error, kTimedOut);
    if (!error) pipe.reader.close();
  });
}

TEST(WithContext, AWaitForAProcessInALaterRunEndsAtTheDeadlineOfAnEarlierOne) {
  std::optional<Context> soon;
  run([&] { soon = Context::background().with_timeout(50ms); });
  run([&] {
    Process sleeps = Process::spawn({"sleep", "3600"});
    auto waiter = spawn([&] {
      std::error_code error;
      (void)sleeps.wait(*soon, error);
      return error;
    });
    std::optional<std::error_code> error = waiter.try_join_for(support::kGenerousLimit);
    EXPECT_EQ(error, kTimedOut);
    sleeps.kill();
    // The goroutine that reaps it is not dropped: what it holds would be a leak.
    EXPECT_TRUE(support::eventually([] { return num_goroutines() == 1; }));
  });
}

}  // namespace
}  // namespace magpie
