// after_func_test.cc: functions that are called when a context ends, and why it ended.

#include <magpie/magpie.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "support/rt_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;

RT_TEST(AfterFunc, IsCalledInAGoroutineOfItsOwnWhenTheContextEnds) {
  Context context = Context::background().with_cancel();
  Chan<std::uint64_t> callers;  // unbuffered: in the canceller the send would wait for ever
  AfterFunc function = context.after_func([=] { callers.send(goroutine_id()); });
  context.cancel();
  EXPECT_NE(callers.recv(), goroutine_id());
  EXPECT_FALSE(function.stop());
}

RT_TEST(AfterFunc, IsCalledAtOnceIfTheContextIsOver) {
  Context context = Context::background().with_cancel();
  context.cancel();
  Chan<void> called;
  AfterFunc function = context.after_func([=] { called.close(); });
  EXPECT_FALSE(called.recv());
}

RT_TEST(AfterFunc, IsCalledForADeadlineAndForTheEndOfAContextAbove) {
  Chan<int> calls;
  AfterFunc late =  // nobody else has a handle of this context
      Context::background().with_timeout(1ms).after_func([=] { calls.send(1); });
  EXPECT_EQ(calls.recv(), 1);
  Context top = Context::background().with_cancel();
  AfterFunc below =
      top.with_cancel().after_func([calls, two = std::make_unique<int>(2)] { calls.send(*two); });
  top.cancel();
  EXPECT_EQ(calls.recv(), 2);
}

RT_TEST(AfterFunc, IsNotCalledOnceStoppedOrDestroyed) {
  Context context = Context::background().with_cancel();
  auto fail = [] { ADD_FAILURE() << "called"; };
  AfterFunc stopped = context.after_func(fail);
  EXPECT_TRUE(stopped.stop());
  EXPECT_FALSE(stopped.stop());
  { AfterFunc destroyed = context.after_func(fail); }
  AfterFunc replaced = context.after_func(fail);
  Chan<void> called;
  replaced = context.after_func([=] { called.close(); });
  context.cancel();
  called.recv();
}

RT_TEST(AfterFunc, OfTheBackgroundIsNeverCalled) {
  AfterFunc function = Context::background().after_func([] { ADD_FAILURE() << "called"; });
  EXPECT_TRUE(function.stop());
}

RT_TEST(AfterFunc, StopOrTheCallWins) {
  for (int round = 0; round < 100; ++round) {
    Context context = Context::background().with_cancel();
    Chan<void> called(1);
    AfterFunc function = context.after_func([=] { called.send(); });
    auto canceller = spawn([=] { context.cancel(); });
    bool kept_from_running = function.stop();
    canceller.join();
    if (kept_from_running) {
      EXPECT_FALSE(called.try_recv());
    } else {
      EXPECT_TRUE(called.recv());
    }
  }
}

TEST(AfterFunc, IsCalledByTheCancellerIfNoRuntimeRunsAndMayDestroyItself) {
  Context context = Context::background().with_cancel();
  std::optional<AfterFunc> function;
  int calls = 0;
  function.emplace(context.after_func([&calls, &function, text = std::string(100, 'x')] {
    function.reset();
    calls += static_cast<int>(text.size());
  }));
  context.cancel();
  EXPECT_EQ(calls, 100);
}

std::string text_of(const std::exception_ptr& cause) {
  try {
    if (cause) std::rethrow_exception(cause);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

std::error_code code_of(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const std::system_error& error) {
    return error.code();
  }
}

RT_TEST(ContextCause, IsWhatCancelWasGiven) {
  Context context = Context::background().with_cancel();
  EXPECT_EQ(context.cause(), nullptr);
  context.cancel(std::runtime_error("the peer hung up"));
  EXPECT_EQ(text_of(context.cause()), "the peer hung up");
  EXPECT_EQ(context.err(), std::errc::operation_canceled);
  context.cancel(std::runtime_error("too late"));
  EXPECT_EQ(text_of(context.cause()), "the peer hung up");
}

RT_TEST(ContextCause, IsTheErrorIfNoneWasGiven) {
  Context cancelled = Context::background().with_cancel();
  cancelled.cancel();
  EXPECT_EQ(code_of(cancelled.cause()), std::errc::operation_canceled);
  Context late = Context::background().with_timeout(0s);
  EXPECT_EQ(code_of(late.cause()), std::errc::timed_out);
  late.cancel(std::runtime_error("it was over before"));
  EXPECT_EQ(code_of(late.cause()), std::errc::timed_out);
  EXPECT_EQ(Context::background().cause(), nullptr);
}

RT_TEST(ContextCause, GoesDownToContextsMadeBeforeAndAfterTheEnd) {
  Context top = Context::background().with_cancel();
  Context below = top.with_cancel().with_value(1, 2);
  Context ended_before = top.with_cancel();
  ended_before.cancel(std::runtime_error("its own"));
  top.cancel(std::runtime_error("from above"));
  EXPECT_EQ(text_of(below.cause()), "from above");
  EXPECT_EQ(text_of(top.with_cancel().with_timeout(1h).cause()), "from above");
  EXPECT_EQ(text_of(ended_before.cause()), "its own");
}

RT_TEST(ContextCause, DoesNotGoUp) {
  Context top = Context::background().with_cancel();
  top.with_cancel().cancel(std::runtime_error("below"));
  EXPECT_EQ(top.cause(), nullptr);
  top.cancel();
  EXPECT_EQ(code_of(top.cause()), std::errc::operation_canceled);
}

RT_TEST(ContextCause, OfAGroupIsTheFirstException) {
  TaskGroup group;
  std::string seen;
  group.go([&](const Context& context) {
    context.done().recv();
    seen = text_of(context.cause());
  });
  group.go([] { throw std::runtime_error("the first"); });
  EXPECT_THROW(group.wait(), std::runtime_error);
  EXPECT_EQ(seen, "the first");
}

}  // namespace
}  // namespace magpie
