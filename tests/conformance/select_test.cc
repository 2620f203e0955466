// select_test.cc: what select promises, as the Go language has it.

#include <magpie/magpie.h>

#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::PlainThread;
using support::waiting_is;

// ---- what is ready

RT_TEST(Select, TheOneCaseThatIsReadyGoesOn) {
  Chan<int> empty(1), full(1);
  full.send(7);
  int got = 0;
  EXPECT_EQ(select(on_recv(empty), on_recv(full, [&](std::optional<int> v) { got = *v; })), 1u);
  EXPECT_EQ(got, 7);
  EXPECT_EQ(select(on_send(empty, 8), on_recv(full)), 0u);
  EXPECT_EQ(empty.recv(), 8);
}

RT_TEST(Select, WaitsUntilACaseIsReady) {
  Chan<int> a, b;
  auto selector = spawn([&] {
    int got = 0;
    std::size_t chosen = select(on_recv(a, [&](std::optional<int> v) { got = *v; }),
                                on_recv(b, [&](std::optional<int> v) { got = *v; }));
    return std::pair(chosen, got);
  });
  ASSERT_TRUE(waiting_is(1));
  b.send(7);
  EXPECT_EQ(selector.join(), (std::pair<std::size_t, int>(1, 7)));
}

RT_TEST(Select, AWaitingSendCaseGivesItsValueToAReceiver) {
  Chan<int> a, b;
  auto selector = spawn([&] { return select(on_send(a, 1), on_send(b, 2)); });
  ASSERT_TRUE(waiting_is(1));
  EXPECT_EQ(b.recv(), 2);
  EXPECT_EQ(selector.join(), 1u);
  EXPECT_EQ(a.try_recv(), std::nullopt);
}

RT_TEST(Select, ACaseThatWasNotChosenLeavesNoTrace) {
  Chan<int> a, b;
  auto selector = spawn([&] { select(on_recv(a), on_recv(b), on_send(a, 3), on_send(b, 4)); });
  ASSERT_TRUE(waiting_is(1));
  EXPECT_EQ(b.recv(), 4);
  selector.join();
  for (Chan<int>& c : {std::ref(a), std::ref(b)}) {
    EXPECT_FALSE(c.try_send(5));
    EXPECT_EQ(c.try_recv(), std::nullopt);
  }
}

RT_TEST(Select, TwoSelectsMayServeEachOther) {
  Chan<int> a, b;
  std::atomic<int> sent{0}, received{0};
  const int rounds = support::scaled(500);
  auto one = spawn([&] {
    for (int i = 0; i < rounds; ++i) {
      select(on_send(a, 1, [&] { ++sent; }), on_recv(b, [&](auto) { ++received; }));
    }
  });
  for (int i = 0; i < rounds; ++i) {
    select(on_recv(a, [&](auto) { ++received; }), on_send(b, 1, [&] { ++sent; }));
  }
  one.join();
  EXPECT_EQ(sent, rounds);
  EXPECT_EQ(received, rounds);
}

RT_TEST(Select, ASelectIsNoPartnerOfItself) {
  Chan<int> c;
  auto selector = spawn([&] { return select(on_send(c, 1), on_recv(c)); });
  ASSERT_TRUE(waiting_is(1));
  EXPECT_EQ(c.recv(), 1);
  EXPECT_EQ(selector.join(), 0u);
}

RT_TEST(Select, AChannelMayBeNamedInSeveralCases) {
  Chan<int> c;
  auto selector = spawn([&] {
    int got = 0;
    auto take = [&](std::optional<int> v) { got = *v; };
    std::size_t chosen = select(on_recv(c, take), on_recv(c, take), on_recv(c, take));
    EXPECT_LT(chosen, 3u);
    return got;
  });
  ASSERT_TRUE(waiting_is(1));
  c.send(7);
  EXPECT_EQ(selector.join(), 7);
  EXPECT_FALSE(c.try_send(8));  // nobody waits any more
}

RT_TEST(Select, AmongSeveralReadyCasesEachIsChosenEquallyOften) {
  // One cannot be seen from the other: the four are ready all the time, the fifth never.
  std::array<Chan<int>, 4> ready{Chan<int>(1), Chan<int>(1), Chan<int>(1), Chan<int>(1)};
  Chan<int> never;
  for (auto& c : ready) c.send(1);
  constexpr int kRounds = 8000;
  std::array<int, 5> chosen{};
  for (int i = 0; i < kRounds; ++i) {
    std::size_t index = select(on_recv(ready[0]), on_recv(never), on_recv(ready[1]),
                               on_recv(ready[2]), on_recv(ready[3]));
    ++chosen[index];
    ready[index == 0 ? 0 : index - 1].send(1);
  }
  EXPECT_EQ(chosen[1], 0);
  for (std::size_t i : {0, 2, 3, 4}) {
    // Nine standard deviations of a fair choice.
    EXPECT_NEAR(chosen[i], kRounds / 4, 9 * 39) << i;
  }
}

// ---- closed and nil

RT_TEST(Select, AReceiveFromAClosedChannelIsReady) {
  Chan<int> open, closed;
  closed.close();
  bool told = false;
  EXPECT_EQ(select(on_recv(open), on_recv(closed, [&](std::optional<int> v) { told = !v; })), 1u);
  EXPECT_TRUE(told);
}

RT_TEST(Select, CloseEndsAWaitingReceiveCase) {
  Chan<int> a;
  Chan<void> b;
  auto selector = spawn([&] {
    bool open = true;
    EXPECT_EQ(select(on_recv(a), on_recv(b, [&](bool received) { open = received; })), 1u);
    return open;
  });
  ASSERT_TRUE(waiting_is(1));
  b.close();
  EXPECT_FALSE(selector.join());
}

RT_TEST(Select, ASendCaseOnAClosedChannelThrowsWhenItIsChosen) {
  Chan<int> closed, open;
  closed.close();
  EXPECT_THROW(select(on_send(closed, 1)), ClosedChannel);
  EXPECT_THROW(select(on_send(closed, 1), otherwise()), ClosedChannel);
  EXPECT_THROW(select(on_send(closed, 1), on_recv(open)), ClosedChannel);
}

RT_TEST(Select, CloseMakesAWaitingSendCaseThrow) {
  Chan<int> a, b;
  auto selector = spawn([&] { select(on_send(a, 1), on_recv(b)); });
  ASSERT_TRUE(waiting_is(1));
  a.close();
  EXPECT_THROW(selector.join(), ClosedChannel);
}

RT_TEST(Select, ANilChannelIsNeverReady) {
  Chan<int> nil = Chan<int>::nil(), c(1);
  EXPECT_EQ(select(on_recv(nil), on_send(nil, 1), otherwise()), 2u);
  c.send(1);
  EXPECT_EQ(select(on_recv(nil), on_send(nil, 1), on_recv(c)), 2u);
}

TEST(Select, WithoutACaseThatCouldEverRunItBlocksForEver) {
  run(Options{.procs = 2, .on_deadlock = DeadlockPolicy::ignore}, [] {
    go([] { select(); });
    go([] { select(on_recv(Chan<int>::nil())); });
    ASSERT_TRUE(waiting_is(2));
    for (int i = 0; i < 100; ++i) yield();
    EXPECT_EQ(stats().waiting, 2u);
  });
}

// ---- otherwise

RT_TEST(Select, OtherwiseRunsWhenNothingIsReady) {
  Chan<int> a, b(1);
  bool ran = false;
  EXPECT_EQ(select(on_recv(a), on_recv(b), otherwise([&] { ran = true; })), 2u);
  EXPECT_TRUE(ran);
  EXPECT_EQ(select(otherwise(), on_recv(a)), 0u);
  EXPECT_EQ(select(on_recv(a), on_send(b, 7), otherwise()), 1u);
  EXPECT_EQ(b.recv(), 7);
  EXPECT_EQ(select(otherwise()), 0u);
}

RT_TEST(Select, WithOneCaseAndOtherwiseItIsTheTryOperation) {
  Chan<int> c(1);
  EXPECT_EQ(select(on_recv(c), otherwise()), 1u);
  EXPECT_EQ(select(on_send(c, 7), otherwise()), 0u);
  EXPECT_EQ(select(on_send(c, 8), otherwise()), 1u);
  int got = 0;
  EXPECT_EQ(select(on_recv(c, [&](std::optional<int> v) { got = *v; }), otherwise()), 0u);
  EXPECT_EQ(got, 7);
}

RT_TEST(Select, OtherwiseDoesNotRunWhileOneOrTheOtherIsAlwaysReady) {
  // The token is put into one channel before it is taken from the other: at no moment are both
  // empty.
  Chan<int> a(2), b(2);
  a.send(1);
  std::atomic<bool> stop{false};
  auto mover = spawn([&] {
    for (int i = 1; !stop; ++i) {
      b.send(1);
      (void)a.recv();
      a.send(1);
      (void)b.recv();
      if (i % 8 == 0) yield();
    }
  });
  int otherwise_ran = 0;
  for (int i = 0; i < support::scaled(20'000); ++i) {
    select(on_recv(a, [&] { a.send(1); }), on_recv(b, [&] { b.send(1); }),
           otherwise([&] { ++otherwise_ran; }));
    if (i % 8 == 0) yield();
  }
  stop = true;
  mover.join();
  EXPECT_EQ(otherwise_ran, 0);
}

// ---- timeouts

RT_TEST(Select, ATimeoutEndsTheWait) {
  Chan<int> a, b;
  auto before = std::chrono::steady_clock::now();
  bool ran = false;
  EXPECT_EQ(select(on_recv(a), on_send(b, 1), on_timeout(5ms, [&] { ran = true; })), 2u);
  EXPECT_TRUE(ran);
  EXPECT_GE(std::chrono::steady_clock::now() - before, 5ms);
  EXPECT_FALSE(a.try_send(1));  // nobody waits any more
  EXPECT_EQ(b.try_recv(), std::nullopt);
}

RT_TEST(Select, ACaseThatIsReadyBeforeTheTimeoutGoesOn) {
  Chan<int> a, b;
  auto selector = spawn([&] { return select(on_recv(a), on_timeout(1h), on_recv(b)); });
  ASSERT_TRUE(waiting_is(1));
  b.send(1);
  EXPECT_EQ(selector.join(), 2u);
}

RT_TEST(Select, ATimeoutOfZeroOrLessIsAtOnceUnlessACaseIsReady) {
  Chan<int> c(1);
  EXPECT_EQ(select(on_recv(c), on_timeout(0s)), 1u);
  EXPECT_EQ(select(on_recv(c), on_timeout(-1h)), 1u);
  EXPECT_EQ(select(on_recv(c), on_timeout(std::chrono::hours::min())), 1u);
  EXPECT_EQ(select(on_timeout(0s)), 0u);
  c.send(1);
  EXPECT_EQ(select(on_recv(c), on_timeout(-1h)), 0u);
}

RT_TEST(Select, ATimeoutThatIsTooLongToCountNeverComes) {
  Chan<int> c;
  auto selector = spawn([&] {
    return select(on_timeout(std::chrono::hours::max()), on_recv(c),
                  on_timeout(std::chrono::duration<double>(1e300)),
                  on_timeout(std::chrono::nanoseconds::max()));
  });
  ASSERT_TRUE(waiting_is(1));
  c.send(1);
  EXPECT_EQ(selector.join(), 1u);
}

RT_TEST(Select, OfSeveralTimeoutsTheShortestCounts) {
  Chan<int> c;
  EXPECT_EQ(select(on_timeout(1h), on_recv(c), on_timeout(1ms), on_timeout(2h)), 2u);
  EXPECT_EQ(select(on_timeout(1h), on_timeout(1ms)), 1u);
}

RT_TEST(Select, AValueAndTheTimeoutMayComeTogetherAndNothingIsLost) {
  Chan<int> c;
  const int rounds = support::scaled(300);
  std::atomic<int> sent{0};
  auto sender = spawn([&] {
    for (int i = 0; i < rounds; ++i) {
      if (select(on_send(c, i), on_timeout(std::chrono::microseconds(i % 100))) == 0) ++sent;
    }
  });
  int received = 0;
  std::atomic<bool> over{false};
  auto receiver = spawn([&] {
    while (!over) {
      if (select(on_recv(c), on_timeout(std::chrono::microseconds(50))) == 0) ++received;
    }
  });
  sender.join();
  over = true;
  receiver.join();
  EXPECT_EQ(received, sent);
}

RT_TEST(Select, OtherwiseComesBeforeAnyTimeout) {
  Chan<int> c;
  EXPECT_EQ(select(on_recv(c), on_timeout(1h), otherwise()), 2u);
}

// ---- handlers

RT_TEST(Select, HandlersRunWithoutLocksAndMayUseTheChannels) {
  Chan<int> a(1), b(1);
  a.send(1);
  select(on_recv(a,
                 [&](std::optional<int> v) {
                   a.send(*v + 1);
                   b.send(*v + 2);
                 }),
         on_recv(b));
  EXPECT_EQ(a.recv(), 2);
  EXPECT_EQ(b.recv(), 3);
}

RT_TEST(Select, AnExceptionFromAHandlerLeavesSelectAfterTheOperation) {
  Chan<int> c(1);
  EXPECT_THROW(select(on_send(c, 7, [] { throw std::runtime_error("handler"); })),
               std::runtime_error);
  EXPECT_EQ(c.size(), 1u);
  EXPECT_THROW(select(on_recv(c, [](auto) { throw std::runtime_error("handler"); })),
               std::runtime_error);
  EXPECT_EQ(c.size(), 0u);
  EXPECT_THROW(select(otherwise([] { throw std::runtime_error("handler"); })), std::runtime_error);
}

RT_TEST(Select, AReceiveHandlerMayTakeNothing) {
  Chan<int> c(1);
  c.send(1);
  bool ran = false;
  select(on_recv(c, [&] { ran = true; }));
  EXPECT_TRUE(ran);
}

RT_TEST(Select, ValuesMayBeMoveOnly) {
  Chan<std::unique_ptr<int>> a(1), b;
  EXPECT_EQ(select(on_recv(b), on_send(a, std::make_unique<int>(7))), 1u);
  std::unique_ptr<int> got;
  select(on_recv(a, [&](std::optional<std::unique_ptr<int>> v) { got = *std::move(v); }));
  EXPECT_EQ(*got, 7);
}

// ---- plain threads

RT_TEST(Select, PlainThreadsMaySelectToo) {
  Chan<int> a, b;
  Chan<void> quit;
  std::atomic<long> sum{0};
  PlainThread thread([&] {
    bool open = true;
    auto add = [&](std::optional<int> v) { sum += *v; };
    while (open) {
      select(on_recv(a, add), on_recv(b, add), on_recv(quit, [&](bool more) { open = more; }));
    }
  });
  for (int i = 0; i < 100; ++i) select(on_send(a, 1), on_send(b, 1));
  quit.close();
  thread.join();
  EXPECT_EQ(sum, 100);
}

TEST(SelectWithoutARuntime, PlainThreadsSelectAmongThemselves) {
  Chan<int> a, b;
  std::thread sender([&] {
    for (int i = 0; i < 200; ++i) select(on_send(a, 1), on_send(b, 1));
  });
  int received = 0;
  for (int i = 0; i < 200; ++i) {
    select(on_recv(a, [&](auto) { ++received; }), on_recv(b, [&](auto) { ++received; }));
  }
  sender.join();
  EXPECT_EQ(received, 200);
  EXPECT_EQ(select(on_recv(a), on_timeout(1ms)), 1u);
  EXPECT_EQ(select(on_timeout(1ms)), 0u);
  EXPECT_EQ(select(on_recv(a), otherwise()), 1u);
}

// ---- the end of run()

TEST(SelectAfterRun, SelectsThatWereDroppedAreNobodysPartner) {
  Chan<int> a, b;
  run([&] {
    for (int i = 0; i < 5; ++i) go([&] { select(on_recv(a), on_send(b, 1), on_timeout(1h)); });
    ASSERT_TRUE(waiting_is(5));
  });
  EXPECT_FALSE(a.try_send(1));
  EXPECT_EQ(b.try_recv(), std::nullopt);
  a.close();
  run([&] { EXPECT_EQ(select(on_recv(b), on_timeout(1ms)), 1u); });
}

TEST(SelectAfterRun, AThreadThatWaitsAmongTheDroppedMayStillTimeOut) {
  Chan<int> c;
  std::optional<std::thread> thread;
  run([&] {
    go([&] { (void)c.recv(); });
    ASSERT_TRUE(waiting_is(1));
    thread.emplace([&] { EXPECT_EQ(select(on_recv(c), on_timeout(200ms)), 1u); });
    go([&] { (void)c.recv(); });
    ASSERT_TRUE(waiting_is(2));
  });
  thread->join();  // its neighbours' stacks are gone by now
  EXPECT_FALSE(c.try_send(1));
}

TEST(SelectAfterRun, ADeadlineWhoseRunHasEndedIsNoticedByOnDone) {
  Context context = Context::background();
  auto with_timer_gone = [&] {
    run([&] { context = Context::background().with_timeout(5ms); });
    return context;
  };
  Chan<int> never;
  auto select_it = [&] {
    Context child = context.with_cancel();
    EXPECT_EQ(select(on_recv(never), on_done(child)), 1u);
    EXPECT_EQ(child.err(), std::make_error_code(std::errc::timed_out));
    EXPECT_EQ(select(on_recv(never), on_done(context), on_timeout(24h)), 1u);
    EXPECT_EQ(context.err(), std::make_error_code(std::errc::timed_out));
    EXPECT_TRUE(context.done().closed());
  };
  with_timer_gone();
  run(select_it);
  with_timer_gone();
  select_it();
  with_timer_gone();
  run([&] {
    Selector selector;
    selector.recv(never);
    selector.done(context);
    EXPECT_EQ(selector.select(), 1u);
  });
}

}  // namespace
}  // namespace magpie
