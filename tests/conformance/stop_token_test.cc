// stop_token_test.cc: goroutines wait with a std::stop_token, through a context made from it.

#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <system_error>
#include <thread>
#include <vector>

#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;

Context until_stop(const std::stop_source& source) {
  return Context::background().with_stop_token(source.get_token());
}

RT_TEST(StopToken, ARequestEndsTheContextAndWhatIsBelowIt) {
  std::stop_source source;
  Context context = until_stop(source), child = context.with_cancel();
  EXPECT_FALSE(context.err());
  EXPECT_TRUE(source.request_stop());
  EXPECT_EQ(context.err(), std::errc::operation_canceled);
  EXPECT_EQ(child.err(), std::errc::operation_canceled);
  EXPECT_TRUE(context.done().closed());
}

RT_TEST(StopToken, ThatHasBeenAskedEndsTheContextAtOnce) {
  std::stop_source source;
  source.request_stop();
  EXPECT_TRUE(until_stop(source).cancelled());
}

RT_TEST(StopToken, OfNoSourceNeverEndsTheContext) {
  Context context = Context::background().with_stop_token({});
  EXPECT_FALSE(context.cancelled());
  context.cancel();
  EXPECT_TRUE(context.cancelled());
}

RT_TEST(StopToken, EndsWithTheParentOrTheTime) {
  std::stop_source source;
  Context parent = Context::background().with_cancel();
  Context context = parent.with_stop_token(source.get_token());
  parent.cancel();
  EXPECT_TRUE(context.cancelled());
  EXPECT_FALSE(source.stop_requested());
  Context late = until_stop(source).with_timeout(1ms);
  late.done().recv();
  EXPECT_EQ(late.err(), std::errc::timed_out);
}

RT_TEST(StopToken, EndsWhatGoroutinesWaitFor) {
  std::stop_source source;
  Context context = until_stop(source);
  Chan<int> never;
  Semaphore none(0);
  std::atomic<int> ended{0};
  WaitGroup all;
  auto check = [&](const std::error_code& error) {
    if (error == std::errc::operation_canceled) ++ended;
  };
  for (int i = 0; i < 300; ++i) {
    all.go([&] {
      std::error_code error;
      (void)never.recv(context, error);
      check(error);
    });
    all.go([&] {
      std::error_code error;
      none.acquire(context, error);
      check(error);
    });
    all.go([&] {
      select(on_recv(never, [](std::optional<int>) {}), on_recv(context.done(), [](bool) {}));
      check(context.err());
    });
  }
  EXPECT_TRUE(support::waiting_is(900));
  support::PlainThread([&] { source.request_stop(); }).join();
  all.wait();
  EXPECT_EQ(ended, 900);
}

// What std::jthread gives its function, given on.
RT_TEST(StopToken, OfAThreadEndsItsGoroutines) {
  Chan<int> work;
  std::error_code error;
  {
    std::jthread thread([&](std::stop_token token) {
      (void)work.recv(Context::background().with_stop_token(token), error);
    });
    blocking([&] {
      thread.request_stop();
      thread.join();
    });
  }
  EXPECT_EQ(error, std::errc::operation_canceled);
}

RT_TEST(StopToken, GoesThroughAContextAndBack) {
  std::stop_source source;
  Context context = until_stop(source);
  std::stop_token behind = context.stop_token();
  EXPECT_FALSE(behind.stop_requested());
  source.request_stop();
  EXPECT_TRUE(behind.stop_requested());
}

RT_TEST(StopToken, KeepsNoContextThatNobodyHas) {
  std::stop_source source;
  auto alive = std::make_shared<int>(0);
  { Context context = until_stop(source).with_value(1, alive); }
  EXPECT_EQ(alive.use_count(), 1);
  source.request_stop();
}

// The callback of the token may be running, on this thread or another, when the last handle goes.
RT_TEST(StopToken, TheContextMayGoWhileItIsAskedToStop) {
  for (int i = 0; i < support::scaled(400); ++i) {
    std::stop_source source;
    auto context = std::make_unique<Context>(until_stop(source));
    std::stop_callback destroy(context->stop_token(), [&] {
      yield();  // the callback waits in the runtime
      if (i % 2 == 0) context.reset();
    });
    auto asker = spawn([&] { source.request_stop(); });
    if (i % 2 != 0) context.reset();
    asker.join();
  }
}

}  // namespace
}  // namespace magpie
