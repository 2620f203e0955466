// context_test.cc: trees of contexts, rule by rule.

#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using support::eventually;

bool is_closed(const Context& context) { return context.done().closed(); }

RT_TEST(Context, OfTheBackgroundNeverEnds) {
  Context root = Context::background();
  EXPECT_FALSE(root.err());
  EXPECT_TRUE(root.done() == Chan<void>::nil());
  EXPECT_EQ(root.deadline(), std::nullopt);
  EXPECT_FALSE(root.stop_token().stop_possible());
  EXPECT_THROW(root.cancel(), std::logic_error);
}

RT_TEST(Context, OneThatIsWokenByCancelMayDestroyTheHandle) {
  auto alive = std::make_shared<int>(0);
  auto context = std::make_unique<Context>(Context::background().with_value(1, alive));
  long while_cancelled = 0;
  {
    std::stop_callback destroy(context->stop_token(), [&] {
      context.reset();
      while_cancelled = alive.use_count();
    });
    context->cancel();
  }
  EXPECT_EQ(while_cancelled, 2);  // cancel() keeps the context
  EXPECT_EQ(alive.use_count(), 1);
  for (int round = 0; round < support::scaled(300); ++round) {
    WaitGroup canceller;
    {
      Context waited_for = Context::background().with_cancel();
      canceller.go([&waited_for] { waited_for.cancel(); });
      waited_for.done().recv();
    }
    canceller.wait();
  }
}

RT_TEST(Context, CancelClosesDoneAndSaysWhy) {
  Context context = Context::background().with_cancel();
  EXPECT_FALSE(context.err());
  EXPECT_FALSE(is_closed(context));
  context.cancel();
  EXPECT_EQ(context.err(), std::errc::operation_canceled);
  EXPECT_FALSE(context.done().recv());
  context.cancel();  // again does nothing
}

RT_TEST(Context, ReachesWhatWasMadeFromItAndNotWhatItWasMadeFrom) {
  Context top = Context::background().with_cancel();
  Context middle = top.with_cancel();
  Context left = middle.with_cancel();
  Context right = middle.with_value("key", 1).with_cancel();
  Context beside = top.with_cancel();
  middle.cancel();
  EXPECT_FALSE(top.err());
  EXPECT_FALSE(beside.err());
  for (const Context& context : {middle, left, right}) {
    EXPECT_EQ(context.err(), std::errc::operation_canceled);
    EXPECT_TRUE(is_closed(context));
  }
  top.cancel();
  EXPECT_EQ(beside.err(), std::errc::operation_canceled);
}

RT_TEST(Context, MadeFromOneThatIsOverIsOverToo) {
  Context top = Context::background().with_cancel();
  top.cancel();
  EXPECT_EQ(top.with_cancel().err(), std::errc::operation_canceled);
  EXPECT_EQ(top.with_value(1, 2).with_timeout(1h).err(), std::errc::operation_canceled);
  EXPECT_TRUE(is_closed(top.with_cancel()));
}

RT_TEST(Context, WithATimeoutEndsByItself) {
  auto start = steady_clock::now();
  Context context = Context::background().with_timeout(2ms);
  ASSERT_TRUE(context.deadline().has_value());
  EXPECT_GE(*context.deadline(), start + 2ms);
  EXPECT_FALSE(context.done().recv());
  EXPECT_GE(steady_clock::now(), start + 2ms);
  EXPECT_EQ(context.err(), std::errc::timed_out);
}

RT_TEST(Context, WhoseDeadlineIsPastIsOverAtOnce) {
  EXPECT_EQ(Context::background().with_timeout(0s).err(), std::errc::timed_out);
  EXPECT_EQ(Context::background().with_timeout(-1h).err(), std::errc::timed_out);
  EXPECT_EQ(Context::background().with_deadline(steady_clock::now() - 1s).err(),
            std::errc::timed_out);
  EXPECT_EQ(stats().timers, 0U);
}

RT_TEST(Context, TheEarlierDeadlineCounts) {
  Context early = Context::background().with_timeout(2ms);
  Context late = early.with_timeout(1h);
  EXPECT_EQ(late.deadline(), early.deadline());
  EXPECT_FALSE(late.done().recv());
  EXPECT_EQ(late.err(), std::errc::timed_out);
  Context never = Context::background().with_timeout(std::chrono::hours::max());
  EXPECT_EQ(never.deadline(), std::nullopt);
}

RT_TEST(Context, CancelledBeforeItsDeadlineWasCancelledAndNeedsNoTimerAnyMore) {
  Context context = Context::background().with_timeout(1h);
  EXPECT_EQ(stats().timers, 1U);
  context.cancel();
  EXPECT_EQ(context.err(), std::errc::operation_canceled);
  EXPECT_EQ(stats().timers, 0U);
}

RT_TEST(Context, WithoutHandlesLeavesNothingBehind) {
  { Context context = Context::background().with_timeout(1h).with_cancel(); }
  EXPECT_EQ(stats().timers, 0U);
  Context top = Context::background().with_cancel();
  for (int i = 0; i < 100; ++i) (void)top.with_cancel();
  top.cancel();
}

RT_TEST(Context, LivesAsLongAsOneThatWasMadeFromIt) {
  Context inner = Context::background().with_timeout(1ms).with_value("a", 1).with_cancel();
  EXPECT_FALSE(inner.done().recv());
  EXPECT_EQ(inner.err(), std::errc::timed_out);
}

RT_TEST(Context, FindsTheNearestValueOfAKey) {
  Context outer = Context::background().with_value("user", 7).with_value("name", "Ada");
  Context inner = outer.with_cancel().with_value("user", 8);
  EXPECT_EQ(outer.value<int>("user"), 7);
  EXPECT_EQ(inner.value<int>("user"), 8);
  EXPECT_EQ(inner.value<std::string>("name"), "Ada");
  EXPECT_EQ(inner.value<std::string>(std::string("name")), "Ada");
  EXPECT_EQ(inner.value<int>("nobody"), std::nullopt);
  EXPECT_EQ(inner.value<long>("user"), std::nullopt);
}

RT_TEST(Context, KeepsTextOfAnyFormAsAString) {
  std::string key = "key", text = "text";
  Context context = Context::background()
                        .with_value(std::string_view(key), 1)
                        .with_value("text", std::string_view(text))
                        .with_value("pointer", text.data());
  key = text = "gone";
  EXPECT_EQ(context.value<int>("key"), 1);
  EXPECT_EQ(context.value<int>(std::string("key")), 1);
  EXPECT_EQ(context.value<int>(std::string_view("key")), 1);
  EXPECT_EQ(context.value<std::string>("text"), "text");
  EXPECT_EQ(context.value<std::string_view>("text"), "text");
  EXPECT_EQ(context.value<std::string>("pointer"), "text");
}

// What can be turned into text need not be text.
RT_TEST(Context, KeepsAPathAsAPath) {
  using std::filesystem::path;
  Context context = Context::background().with_value("directory", path("/tmp"));
  EXPECT_EQ(context.value<path>("directory"), path("/tmp"));
  EXPECT_EQ(context.value<std::string>("directory"), std::nullopt);
}

// done() is a channel like others: any holder may close it.
RT_TEST(Context, IsCancelledWithItsChildrenAlthoughAUserHasClosedDone) {
  Context parent = Context::background().with_cancel();
  Context child = parent.with_cancel();
  parent.done().close();
  EXPECT_FALSE(parent.err());
  EXPECT_NO_THROW(parent.cancel());
  EXPECT_EQ(child.err(), std::errc::operation_canceled);
  parent.cancel();  // which waits until the first one is complete
}

RT_TEST(Context, KeysOfDifferentTypesAreDifferent) {
  enum class Key { one };
  Context context = Context::background().with_value(1, 10).with_value(Key::one, 11);
  EXPECT_EQ(context.value<int>(1), 10);
  EXPECT_EQ(context.value<int>(Key::one), 11);
  EXPECT_EQ(context.value<int>(1L), std::nullopt);
}

RT_TEST(Context, ANearerValueOfAnotherTypeHidesTheOneFurtherUp) {
  Context context =
      Context::background().with_value("key", std::string("outer")).with_value("key", 1);
  EXPECT_EQ(context.value<std::string>("key"), std::nullopt);
  EXPECT_EQ(context.value<int>("key"), 1);
}

RT_TEST(Context, StopTokenIsAskedToStop) {
  Context context = Context::background().with_cancel();
  std::stop_token token = context.stop_token();
  std::atomic<int> called{0};
  std::stop_callback callback(token, [&] { ++called; });
  EXPECT_TRUE(token.stop_possible());
  EXPECT_FALSE(token.stop_requested());
  context.cancel();
  EXPECT_TRUE(token.stop_requested());
  EXPECT_EQ(called, 1);
  EXPECT_TRUE(context.stop_token().stop_requested());
  EXPECT_TRUE(context.with_cancel().stop_token().stop_requested());
}

// While a callback waits its goroutine keeps the thread: else another one there would pass for the
// callback itself, and the standard library would let it destroy what runs.
RT_TEST(Context, ACallbackOfAStopTokenIsNotDestroyedWhileItWaits) {
  Context context = Context::background().with_cancel();
  Chan<void> gate;
  std::atomic<bool> in_callback{false}, destroyed{false}, destroyed_too_early{false};
  auto callback = [&] {
    in_callback = true;
    for (int i = 0; i < 20; ++i) yield();
    gate.recv();
    destroyed_too_early = destroyed.load();
  };
  std::atomic<bool> registered{false};
  auto owner = spawn([&] {
    {
      std::stop_callback stop(context.stop_token(), callback);
      registered = true;
      EXPECT_TRUE(eventually([&] { return in_callback.load(); }));
    }
    destroyed = true;
  });
  go([&] {
    EXPECT_TRUE(eventually([&] { return in_callback.load(); }));
    for (int i = 0; i < 20; ++i) yield();
    gate.close();
  });
  EXPECT_TRUE(eventually([&] { return registered.load(); }));
  context.cancel();
  owner.join();
  EXPECT_FALSE(destroyed_too_early);
}

RT_TEST(Context, ACallbackMayCancelWhatIsBeingCancelled) {
  Context parent = Context::background().with_cancel();
  Context child = parent.with_cancel();
  int calls = 0;
  std::stop_callback stop(child.stop_token(), [&] {
    ++calls;
    parent.cancel();
    child.cancel();
  });
  parent.cancel();
  EXPECT_EQ(calls, 1);
}

RT_TEST(Context, ASecondCancelReturnsWhenAllAreOver) {
  for (int round = 0; round < 5; ++round) {
    Context root = Context::background().with_cancel();
    std::vector<Context> children;
    for (int i = 0; i < support::scaled(20'000); ++i) children.push_back(root.with_cancel());
    auto first = spawn([&] { root.cancel(); });
    EXPECT_TRUE(eventually([&] { return root.cancelled(); }));
    root.cancel();
    for (const Context& child : children) ASSERT_TRUE(child.cancelled());
    first.join();
  }
}

// The one above waits for the one below, also when that came first.
RT_TEST(Context, CancelReturnsWhenWhatAnotherCancelsBelowItIsOverToo) {
  for (int round = 0; round < 5; ++round) {
    Context root = Context::background().with_cancel();
    Context middle = root.with_cancel();
    std::vector<Context> children;
    for (int i = 0; i < support::scaled(20'000); ++i) children.push_back(middle.with_cancel());
    auto below = spawn([&] { middle.cancel(); });
    EXPECT_TRUE(eventually([&] { return middle.cancelled(); }));
    root.cancel();
    for (const Context& child : children) ASSERT_TRUE(child.cancelled());
    below.join();
  }
}

// Watched by ThreadSanitizer: the timer is there before it can fire.
RT_TEST(Context, AShortTimeoutMayEndWhileItIsBeingMade) {
  for (int i = 0; i < support::scaled(3000); ++i) {
    Context context = Context::background().with_timeout(std::chrono::nanoseconds(200 + i % 3000));
    if (i % 8 == 0) context.done().recv();
  }
}

RT_TEST(Context, ATimeoutAsksTheStopTokenToo) {
  Context context = Context::background().with_timeout(1ms);
  std::stop_token token = context.stop_token();
  EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
}

RT_TEST(Context, EverybodyWhoWaitsIsWoken) {
  Context context = Context::background().with_cancel();
  WaitGroup all;
  std::atomic<int> woken{0};
  for (int i = 0; i < 20; ++i) {
    all.go([&, mine = context.with_cancel()] {
      mine.done().recv();
      EXPECT_EQ(mine.err(), std::errc::operation_canceled);
      ++woken;
    });
  }
  context.cancel();
  all.wait();
  EXPECT_EQ(woken, 20);
}

TEST(Context, WorksOnPlainThreadsWithoutARuntime) {
  Context context = Context::background().with_cancel();
  std::thread waiter([&] { EXPECT_FALSE(context.done().recv()); });
  context.cancel();
  waiter.join();
  EXPECT_THROW((void)Context::background().with_timeout(1h), std::logic_error);
}

RT_TEST(Context, ALongChainIsCancelledAndDestroyedWithoutRecursion) {
  Context top = Context::background().with_cancel();
  {
    Context last = top;
    for (int i = 0; i < 100'000; ++i) last = last.with_cancel();
    top.cancel();
    EXPECT_EQ(last.err(), std::errc::operation_canceled);
  }
}

// Children are made, dropped and cancelled while the parent is cancelled.
RT_TEST(Context, ParentsAndChildrenMayEndAtTheSameTime) {
  for (int round = 0; round < support::scaled(300); ++round) {
    Context top = Context::background().with_cancel();
    WaitGroup all;
    for (int i = 0; i < 4; ++i) {
      all.go([top, i] {
        for (int k = 0; k < 10; ++k) {
          Context child = top.with_cancel();
          if (i % 2 == 0) child.cancel();
          if (k == 5) yield();
        }
        Context last = top.with_cancel();
        last.done().recv();
      });
    }
    all.go([top] { top.cancel(); });
    all.wait();
  }
}

}  // namespace
}  // namespace magpie
