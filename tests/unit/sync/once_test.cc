// once_test.cc: something that is done once.

#include <magpie/magpie.h>

#include <atomic>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "support/rt_test.h"

namespace magpie {
namespace {

constinit Once static_once;  // needs no constructor at run time

RT_TEST(Once, OnlyTheFirstCallIsMade) {
  Once once;
  int calls = 0;
  EXPECT_FALSE(once.done());
  for (int i = 0; i < 3; ++i) once.call([&] { ++calls; });
  EXPECT_TRUE(once.done());
  EXPECT_EQ(calls, 1);
  once.call([](int) { FAIL(); }, 7);
}

RT_TEST(Once, EverybodyWaitsUntilTheCallIsCompleteAndSeesWhatItDid) {
  Once once;
  int value = 0;  // plain: the Once orders it
  std::atomic<int> calls{0};
  WaitGroup all;
  for (int i = 0; i < 50; ++i) {
    all.go([&] {
      once.call([&] {
        ++calls;
        for (int n = 0; n < 20; ++n) yield();
        value = 7;
      });
      EXPECT_EQ(value, 7);
    });
  }
  all.wait();
  EXPECT_EQ(calls, 1);
}

RT_TEST(Once, ACallThatThrowsIsMadeAgainByTheNext) {
  Once once;
  EXPECT_THROW(once.call([] { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_FALSE(once.done());
  int calls = 0;
  once.call([&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

RT_TEST(Once, WhoWaitsForACallLeavesWhenItsContextIsOver) {
  Once once;
  Chan<void> begun, go_on;
  JoinHandle<void> first = spawn([&] {
    once.call([&] {
      begun.close();
      (void)go_on.recv();
    });
  });
  (void)begun.recv();
  Context context = Context::background().with_cancel();
  JoinHandle<std::error_code> second = spawn([&] {
    std::error_code error;
    EXPECT_FALSE(once.call(
        context, [] { FAIL(); }, error));
    return error;
  });
  yield();
  context.cancel();
  EXPECT_EQ(second.join(), std::errc::operation_canceled);
  EXPECT_THROW(once.call(context, [] { FAIL(); }), std::system_error);
  go_on.close();
  first.join();
  // What is complete counts, context or not.
  once.call(context, [] { FAIL(); });
}

RT_TEST(Once, WithAContextOneCallIsMadeAndEverybodyWaitsForIt) {
  Once once;
  int value = 0;  // plain: the Once orders it
  Context context = Context::background().with_cancel();
  EXPECT_THROW(once.call(context, [] { throw std::runtime_error("no"); }), std::runtime_error);
  WaitGroup all;
  for (int i = 0; i < 20; ++i) {
    all.go([&, i] {
      const auto set = [&] {
        yield();
        ++value;
      };
      if (i % 2 == 0) {
        once.call(context, set);
      } else {
        once.call(set);
      }
      EXPECT_EQ(value, 1);
    });
  }
  all.wait();
  Once itself;
  EXPECT_THROW(itself.call(context, [&] { itself.call(context, [] {}); }), std::logic_error);
}

RT_TEST(Once, WhoWaitsForACallThatThrowsMakesItItself) {
  Once once;
  std::atomic<int> calls{0}, thrown{0};
  WaitGroup all;
  for (int i = 0; i < 20; ++i) {
    all.go([&] {
      try {
        once.call([&] {
          yield();
          if (++calls <= 10) throw std::runtime_error("no");
        });
      } catch (const std::runtime_error&) {
        ++thrown;
      }
    });
  }
  all.wait();
  EXPECT_EQ(calls, 11);
  EXPECT_EQ(thrown, 10);
}

RT_TEST(Once, ACallFromWithinTheCallThrows) {
  Once once;
  once.call([&] { EXPECT_THROW(once.call([] {}), std::logic_error); });
  EXPECT_TRUE(once.done());
}

// Calls in the first goroutine that main starts, which is dropped in the call. Returns its number,
// which is the same in each run().
std::uint64_t call_and_be_dropped(Once& once) {
  std::atomic<std::uint64_t> caller{0};
  run(Options{.procs = 1}, [&] {
    go([&] {
      caller = goroutine_id();
      try {
        once.call([] { (void)Chan<void>::nil().recv(); });
      } catch (const std::logic_error& error) {
        ADD_FAILURE() << error.what();
      }
    });
    while (caller == 0) yield();
    for (int i = 0; i < 10; ++i) yield();
  });
  return caller;
}

TEST(OnceInTwoRuns, AGoroutineThatWasDroppedInsideIsNotTakenForTheCaller) {
  Once once;
  std::uint64_t first = call_and_be_dropped(once);
  EXPECT_EQ(call_and_be_dropped(once), first);  // which waits for the first one
  EXPECT_FALSE(once.done());
}

TEST(OnceWithoutARuntime, PlainThreadsUseItAmongThemselves) {
  std::atomic<int> calls{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { static_once.call([&] { ++calls; }); });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(calls, 1);
  Once once;
  once.call([&] { EXPECT_THROW(once.call([] {}), std::logic_error); });
}

}  // namespace
}  // namespace magpie
