// with_context_calls_test.cc: what a cancelled call leaves behind, call by call.
#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "support/cancellable.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::cancellable;
using support::eventually;
using support::kCancelled;
using support::kTimedOut;
using support::over;

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
