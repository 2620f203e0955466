// with_context_test.cc: what all waits with a Context promise, and what is special to some.
#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/at_procs.h"
#include "support/cancellable.h"
#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::all_cancellable;
using support::all_cancellable_outside;
using support::Cancellable;
using support::eventually;
using support::PlainThread;

const std::error_code kCancelled = std::make_error_code(std::errc::operation_canceled);
const std::error_code kTimedOut = std::make_error_code(std::errc::timed_out);

Context cancellable() { return Context::background().with_cancel(); }
Context over() {
  Context context = cancellable();
  context.cancel();
  return context;
}

// What was granted is still there.
void expect_granted(const Cancellable& operation) {
  std::error_code error = kCancelled;
  EXPECT_TRUE(operation.call(Context::background(), error)) << operation.name;
  EXPECT_FALSE(error) << operation.name;
  operation.undo();
}

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

// Calls, grants and cancels at the same moment, again and again: each grant lets one call through.
void race(const Cancellable& operation, int rounds) {
  Chan<Context> to_cancel, to_grant;
  WaitGroup others;
  others.go([=] {
    for (Context& context : to_cancel) context.cancel();
  });
  others.go([=, grant = operation.grant] {
    for ([[maybe_unused]] Context& context : to_grant) grant();
  });
  for (int i = 0; i < rounds; ++i) {
    Context context = cancellable();
    to_cancel.send(context);
    to_grant.send(context);
    std::error_code error;
    bool done = operation.call(context, error);
    EXPECT_EQ(done, !error) << operation.name;
    if (done) {
      operation.undo();
    } else {
      EXPECT_EQ(error, kCancelled) << operation.name;
      expect_granted(operation);
    }
  }
  to_cancel.close();
  to_grant.close();
  others.wait();
}

class WithContextRaces : public support::AtProcs {};
INSTANTIATE_TEST_SUITE_P(AtProcs, WithContextRaces, support::kFewProcs,
                         testing::PrintToStringParamName());

TEST_P(WithContextRaces, ACallIsServedOrCancelledAndNeverBothNorNeither) {
  run(Options{.procs = procs()}, [] {
    for (const Cancellable& operation : all_cancellable()) race(operation, support::scaled(400));
  });
}

TEST_P(WithContextRaces, TheSameFromAPlainThread) {
  run(Options{.procs = procs()}, [] {
    for (const Cancellable& operation : all_cancellable()) {
      PlainThread thread([&] { race(operation, support::scaled(100)); });
      thread.join();
    }
  });
}

TEST_P(WithContextRaces, ManyWaitersOfManyContextsTakeEachUnitOnce) {
  run(Options{.procs = procs()}, [] {
    Semaphore units(0);
    std::atomic<int> taken{0};
    const int rounds = support::scaled(50);
    for (int i = 0; i < rounds; ++i) {
      Context left = cancellable(), right = cancellable();
      WaitGroup waiters;
      taken = 0;
      for (int each = 0; each < 20; ++each) {
        waiters.go([&, context = each % 2 == 0 ? left : right] {
          std::error_code error;
          if (units.acquire(context, error)) taken.fetch_add(1);
        });
      }
      waiters.go([&] { left.cancel(); });
      waiters.go([&] { units.release(10); });
      waiters.go([&] {
        if (!eventually([&] { return taken.load() >= 10; }, 1ms)) right.cancel();
        right.cancel();
      });
      waiters.wait();
      int left_over = 0;
      while (units.try_acquire()) ++left_over;
      EXPECT_EQ(taken.load() + left_over, 10);
    }
  });
}

TEST_P(WithContextRaces, AMutexIsHeldByOneAtATimeWhileOthersGiveUp) {
  run(Options{.procs = procs()}, [] {
    Mutex mutex;
    RWMutex rw_mutex;
    int guarded = 0, guarded_too = 0;
    std::atomic<int> locked{0}, locked_too{0};
    WaitGroup all;
    const int rounds = support::scaled(300);
    for (int each = 0; each < 8; ++each) {
      all.go([&, each] {
        for (int i = 0; i < rounds; ++i) {
          Context context = cancellable();
          JoinHandle<void> canceller = spawn([&] { context.cancel(); });
          std::error_code error;
          if (mutex.lock(context, error)) {
            ++guarded;
            locked.fetch_add(1);
            if (i % 8 == 0) yield();
            mutex.unlock();
          }
          if (each % 2 == 0 ? rw_mutex.lock(context, error)
                            : rw_mutex.lock_shared(context, error)) {
            if (each % 2 == 0) {
              ++guarded_too;
              locked_too.fetch_add(1);
            }
            if (i % 8 == 0) yield();
            each % 2 == 0 ? rw_mutex.unlock() : rw_mutex.unlock_shared();
          }
          canceller.join();
          // Without a context too.
          rw_mutex.lock_shared();
          rw_mutex.unlock_shared();
        }
      });
    }
    all.wait();
    EXPECT_EQ(guarded, locked.load());
    EXPECT_EQ(guarded_too, locked_too.load());
    EXPECT_TRUE(mutex.try_lock());
    EXPECT_TRUE(rw_mutex.try_lock());  // nobody is counted any more
  });
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

TEST_P(WithContextRaces, ASleepEndsOnceAlsoWhenTimeIsUpAtTheSameMoment) {
  run(Options{.procs = procs()}, [] {
    const int rounds = support::scaled(400);
    for (int i = 0; i < rounds; ++i) {
      Context context = cancellable();
      auto until = std::chrono::steady_clock::now() + 50us;
      auto canceller = spawn([&] {
        sleep_until(until);
        context.cancel();
      });
      std::error_code error;
      bool slept = sleep_until(until, context, error);
      EXPECT_EQ(slept, !error);
      canceller.join();
    }
  });
}

// The context's timer cancels it, and each thread looks at the time itself.
TEST_P(WithContextRaces, AJoinEndsOnceAlsoWhenTwoNoticeItsDeadline) {
  run(Options{.procs = procs()}, [] {
    constexpr int kThreads = 20;
    std::vector<JoinHandle<void>> endless;
    for (int i = 0; i < kThreads; ++i) endless.push_back(spawn([] { sleep_for(24h); }));
    const int rounds = support::scaled(40);
    for (int round = 0; round < rounds; ++round) {
      Context context = Context::background().with_timeout(2ms);
      std::atomic<int> timed_out{0};
      WaitGroup group;
      group.add(kThreads);
      std::vector<std::thread> threads;
      for (auto& one : endless) {
        threads.emplace_back([&] {
          std::error_code error;
          if (!one.join(context, error) && error == kTimedOut) timed_out.fetch_add(1);
          group.done();
        });
      }
      group.wait();
      for (std::thread& thread : threads) thread.join();
      EXPECT_EQ(timed_out.load(), kThreads);
    }
    for (auto& one : endless) one.detach();
  });
}

RT_TEST(WithContext, WhatWasNotSentStaysWithItsSender) {
  Chan<std::unique_ptr<int>> plain;
  auto value = std::make_unique<int>(7);
  std::error_code error;
  EXPECT_FALSE(plain.send(over(), std::move(value), error));
  ASSERT_NE(value, nullptr);
  EXPECT_THROW(plain.send(Context::background().with_timeout(1ms), std::move(value)),
               std::system_error);
  ASSERT_NE(value, nullptr);
  plain.close();
  EXPECT_THROW(plain.send(cancellable(), std::move(value)), ClosedChannel);
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(*value, 7);

  struct Sentence {
    std::vector<std::string> words;
  };
  static_assert(!moves_plainly<Sentence>);  // it travels on the heap
  Chan<Sentence> on_heap;
  Sentence sentence{{"as", "it", "was"}};
  EXPECT_FALSE(on_heap.send(Context::background().with_timeout(1ms), std::move(sentence), error));
  EXPECT_EQ(sentence.words.size(), 3u);
  EXPECT_FALSE(on_heap.send(over(), std::as_const(sentence), error));
  EXPECT_EQ(sentence.words.size(), 3u);
}

RT_TEST(WithContext, AReceiveTellsClosedFromCancelled) {
  Chan<int> channel;
  channel.close();
  std::error_code error = kCancelled;
  EXPECT_EQ(channel.recv(cancellable(), error), std::nullopt);
  EXPECT_FALSE(error);
  EXPECT_EQ(channel.recv(over(), error), std::nullopt);
  EXPECT_EQ(error, kCancelled);

  Chan<int> closed_later;
  auto receiver = spawn([&] { return closed_later.recv(cancellable()); });
  ASSERT_TRUE(eventually([] { return stats().waiting == 1; }));
  closed_later.close();
  EXPECT_EQ(receiver.join(), std::nullopt);
}

RT_TEST(WithContext, ItEndsAWaitAtTheNilChannel) {
  std::error_code error;
  EXPECT_FALSE(Chan<int>::nil().send(Context::background().with_timeout(1ms), 1, error));
  EXPECT_EQ(error, kTimedOut);
  EXPECT_EQ(Chan<int>::nil().recv(Context::background().with_timeout(1ms), error), std::nullopt);
  EXPECT_EQ(error, kTimedOut);
}

RT_TEST(WithContext, AWriterThatGivesUpKeepsNoReaderOut) {
  RWMutex mutex;
  mutex.lock_shared();
  Context context = cancellable();
  auto writer = spawn([&] {
    std::error_code error;
    return mutex.lock(context, error);
  });
  ASSERT_TRUE(eventually([] { return stats().waiting == 1; }));
  EXPECT_FALSE(mutex.try_lock_shared());
  auto reader = spawn([&] {
    mutex.lock_shared();  // behind the writer
    mutex.unlock_shared();
  });
  ASSERT_TRUE(eventually([] { return stats().waiting == 2; }));
  context.cancel();
  EXPECT_FALSE(writer.join());
  reader.join();
  mutex.lock_shared();  // nor one that comes later
  EXPECT_TRUE(mutex.try_lock_shared());
  mutex.unlock_shared();
  std::error_code error;
  EXPECT_FALSE(mutex.lock(Context::background().with_timeout(1ms), error));
  mutex.unlock_shared();
  auto next = spawn([&] { mutex.lock(); });
  ASSERT_TRUE(eventually([] { return stats().waiting == 1; }));
  mutex.unlock_shared();
  next.join();
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
}

RT_TEST(WithContext, ALargeRequestThatIsCancelledLetsTheSmallOneBehindItIn) {
  Semaphore units(1);
  Context context = cancellable();
  auto large = spawn([&] {
    std::error_code error;
    return units.acquire(context, 5, error);
  });
  ASSERT_TRUE(eventually([] { return stats().waiting == 1; }));
  auto small = spawn([&] { units.acquire(); });
  ASSERT_TRUE(eventually([] { return stats().waiting == 2; }));
  context.cancel();
  EXPECT_FALSE(large.join());
  small.join();
  EXPECT_FALSE(units.try_acquire());
}

RT_TEST(WithContext, ANotificationGoesToTheNextWhenTheFirstIsCancelled) {
  Mutex mutex;
  CondVar changed;
  Context context = cancellable();
  auto wait = [&](const Context& its) {
    std::unique_lock hold(mutex);
    std::error_code error;
    bool notified = changed.wait(hold, its, error);
    EXPECT_TRUE(hold.owns_lock());
    return notified;
  };
  auto first = spawn([&] { return wait(context); });
  ASSERT_TRUE(eventually([] { return stats().waiting == 1; }));
  auto second = spawn([&] { return wait(Context::background()); });
  ASSERT_TRUE(eventually([] { return stats().waiting == 2; }));
  context.cancel();
  EXPECT_FALSE(first.join());
  changed.notify_one();
  EXPECT_TRUE(second.join());
}

RT_TEST(WithContext, AJoinThatIsCancelledLeavesTheGoroutineToItsHandle) {
  Chan<void> go_on;
  auto handle = spawn([&] {
    (void)go_on.recv();
    return std::string("result");
  });
  EXPECT_THROW(handle.join(Context::background().with_timeout(1ms)), std::system_error);
  EXPECT_TRUE(handle.joinable());
  go_on.send();
  EXPECT_EQ(handle.join(cancellable()), "result");
  EXPECT_FALSE(handle.joinable());
  auto throws = spawn([] { throw std::runtime_error("its own"); });
  EXPECT_THROW(throws.join(cancellable()), std::runtime_error);
  EXPECT_THROW(throws.join(cancellable()), std::logic_error);
}

RT_TEST(WithContext, APoolThatIsNotWaitedForAnyMoreDoesItsJobs) {
  Chan<void> go_on;
  std::atomic<bool> done{false};
  WorkerPool pool(1, 1);
  pool.submit([&] {
    (void)go_on.recv();
    done = true;
  });
  std::error_code error;
  EXPECT_FALSE(pool.wait(Context::background().with_timeout(1ms), error));
  EXPECT_EQ(error, kTimedOut);
  EXPECT_THROW(pool.submit(cancellable(), [] {}), ClosedChannel);  // wait() has closed it
  go_on.send();
  pool.wait(cancellable());
  EXPECT_TRUE(done);
}

RT_TEST(WithContext, SelectHasACaseForIt) {
  Chan<int> never;
  Context context = cancellable();
  auto waiter = spawn([&] {
    bool told = false;
    std::size_t chosen = select(on_recv(never), on_done(context, [&] { told = true; }));
    EXPECT_TRUE(told);
    return chosen;
  });
  auto another = spawn([&] {
    Selector selector;
    selector.recv(never);
    selector.done(context);
    return selector.select();
  });
  context.cancel();
  EXPECT_EQ(waiter.join(), 1u);
  EXPECT_EQ(another.join(), 1u);
  EXPECT_EQ(select(on_done(Context::background()), otherwise()), 1u);
}

}  // namespace
}  // namespace magpie
