// join_handle_test.cc: spawn() and what its handle does.

#include <magpie/magpie.h>

#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/plain_thread.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using support::eventually;
using support::PlainThread;

RT_TEST(JoinHandle, JoinReturnsTheValue) {
  EXPECT_EQ(spawn([] { return 7; }).join(), 7);
  EXPECT_EQ(spawn([] { return std::string(1000, 'x'); }).join(), std::string(1000, 'x'));
}

RT_TEST(JoinHandle, AValueMayBeMoveOnly) {
  std::unique_ptr<int> value = spawn([] { return std::make_unique<int>(7); }).join();
  EXPECT_EQ(*value, 7);
}

RT_TEST(JoinHandle, AValueMayBeAReference) {
  int variable = 1;
  int& same = spawn([&variable]() -> int& { return variable; }).join();
  EXPECT_EQ(&same, &variable);
}

RT_TEST(JoinHandle, AValueMayBeLargerThanTheGoroutinesRecord) {
  std::array<int, 1000> large = spawn([] {
                                  std::array<int, 1000> all{};
                                  all.back() = 7;
                                  return all;
                                }).join();
  EXPECT_EQ(large.back(), 7);
}

RT_TEST(JoinHandle, ArgumentsAreMovedIntoTheGoroutine) {
  auto handle = spawn([](std::unique_ptr<int> number, int factor) { return *number * factor; },
                      std::make_unique<int>(6), 7);
  EXPECT_EQ(handle.join(), 42);
}

RT_TEST(JoinHandle, JoinRethrowsTheExceptionOfTheGoroutine) {
  auto handle = spawn([]() -> int { throw std::runtime_error("no value"); });
  try {
    handle.join();
    ADD_FAILURE() << "join() returned";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "no value");
  }
}

RT_TEST(JoinHandle, JoinOnAGoroutineThatHasEndedReturnsItsValue) {
  std::atomic<bool> ended{false};
  auto handle = spawn([&] {
    ended = true;
    return 7;
  });
  ASSERT_TRUE(eventually([&] { return ended.load() && num_goroutines() == 1; }));
  EXPECT_EQ(handle.join(), 7);
}

RT_TEST(JoinHandle, JoinWaitsForAGoroutineThatHasStarted) {
  WaitGroup gate;
  gate.add(1);
  std::atomic<bool> started{false};
  auto handle = spawn([&] {
    started = true;
    gate.wait();
    return 7;
  });
  ASSERT_TRUE(eventually([&] { return started.load(); }));
  go([&] { gate.done(); });
  EXPECT_EQ(handle.join(), 7);
}

RT_TEST(JoinHandle, AnEmptyHandleCanNeitherBeJoinedNorDetached) {
  JoinHandle<int> empty;
  EXPECT_FALSE(empty.joinable());
  EXPECT_THROW(empty.join(), std::logic_error);
  EXPECT_THROW(empty.detach(), std::logic_error);
}

RT_TEST(JoinHandle, AfterJoinTheHandleIsEmpty) {
  auto handle = spawn([] {});
  EXPECT_TRUE(handle.joinable());
  handle.join();
  EXPECT_FALSE(handle.joinable());
  EXPECT_THROW(handle.join(), std::logic_error);
}

RT_TEST(JoinHandle, MovingAHandleMovesTheRightToJoin) {
  auto first = spawn([] { return 7; });
  JoinHandle<int> second = std::move(first);
  EXPECT_FALSE(first.joinable());
  EXPECT_EQ(second.join(), 7);
}

RT_TEST(JoinHandle, AssigningToAHandleJoinsTheGoroutineItHad) {
  std::atomic<bool> first_ended{false};
  auto handle = spawn([&] {
    yield();
    first_ended = true;
    return 1;
  });
  handle = spawn([] { return 2; });
  EXPECT_TRUE(first_ended);
  EXPECT_EQ(handle.join(), 2);
}

RT_TEST(JoinHandle, TheDestructorJoins) {
  bool ended = false;  // plain: joining orders it
  {
    auto handle = spawn([&] {
      yield();
      ended = true;
    });
  }
  EXPECT_TRUE(ended);
}

RT_TEST(JoinHandle, TheDestructorSwallowsTheGoroutinesException) {
  {
    auto handle = spawn([] { throw std::runtime_error("nobody asks"); });
  }
  SUCCEED();
}

RT_TEST(JoinHandle, ADetachedGoroutineGoesOnAndItsResultIsDestroyed) {
  auto result = std::make_shared<int>(7);
  std::weak_ptr<int> watch = result;
  WaitGroup gate;
  gate.add(1);
  spawn([&gate, mine = std::move(result)] {
    gate.wait();
    return mine;
  }).detach();
  EXPECT_FALSE(watch.expired());
  gate.done();
  EXPECT_TRUE(eventually([&] { return watch.expired(); }));
  EXPECT_TRUE(eventually([] { return num_goroutines() == 1; }));  // the gate lives until then
}

RT_TEST(JoinHandle, DetachingAGoroutineThatHasEndedDestroysItsResult) {
  auto result = std::make_shared<int>(7);
  std::weak_ptr<int> watch = result;
  auto handle = spawn([mine = std::move(result)] { return mine; });
  ASSERT_TRUE(eventually([] { return num_goroutines() == 1; }));
  EXPECT_FALSE(watch.expired());
  handle.detach();
  EXPECT_TRUE(watch.expired());
}

RT_TEST(JoinHandle, WhatTheGoroutineCapturedEndsBeforeTheJoinerGoesOn) {
  auto captured = std::make_shared<int>(7);
  std::weak_ptr<int> watch = captured;
  spawn([mine = std::move(captured)] { return *mine; }).join();
  EXPECT_TRUE(watch.expired());
}

RT_TEST(JoinHandle, ManyGoroutinesCanBeJoinedInAnyOrder) {
  std::vector<JoinHandle<int>> handles;
  for (int i = 0; i < 1000; ++i) handles.push_back(spawn([i] { return i; }));
  for (int i = 0; i < 1000; i += 2) EXPECT_EQ(handles[static_cast<std::size_t>(i)].join(), i);
  for (int i = 999; i > 0; i -= 2) EXPECT_EQ(handles[static_cast<std::size_t>(i)].join(), i);
}

// With one proc nobody else can have started it.
TEST(JoinInPlace, AGoroutineThatHasNotStartedIsRunByItsJoiner) {
  run(Options{.procs = 1}, [] {
    const std::uint64_t before = stats().total.claims;
    const std::uint64_t my_id = goroutine_id();
    std::uint64_t child_id = 0;
    spawn([&] { child_id = goroutine_id(); }).join();
    EXPECT_EQ(stats().total.claims, before + 1);
    EXPECT_NE(child_id, 0u);
    EXPECT_NE(child_id, my_id);  // a goroutine of its own all the same
    EXPECT_EQ(goroutine_id(), my_id);
  });
}

TEST(JoinInPlace, TheEntryLeftInTheQueueIsNotRunAgain) {
  run(Options{.procs = 1}, [] {
    int first_runs = 0, second_runs = 0, third_runs = 0;
    auto first = spawn([&] { ++first_runs; });
    auto second = spawn([&] { ++second_runs; });
    go([&] { ++third_runs; });
    first.join();  // from the middle of the ring
    second.join();
    EXPECT_EQ(stats().total.claims, 2u);
    EXPECT_EQ(third_runs, 0);
    EXPECT_TRUE(eventually([&] { return third_runs == 1; }));
    EXPECT_EQ(first_runs, 1);
    EXPECT_EQ(second_runs, 1);
    EXPECT_EQ(num_goroutines(), 1u);
  });
}

TEST(JoinInPlace, RecordsOfJoinedGoroutinesMayBeReusedWhileTheirEntriesAreStillQueued) {
  run(Options{.procs = 1}, [] {
    int runs = 0;
    for (int round = 0; round < 5000; ++round) {
      auto first = spawn([&] { ++runs; });
      auto second = spawn([&] { ++runs; });
      first.join();
      second.join();
    }
    EXPECT_EQ(runs, 10'000);
    yield();
    EXPECT_EQ(runs, 10'000);
  });
}

TEST(JoinInPlace, AGoroutineThatAskedForAStackIsNotRunOnTheJoiners) {
  run(Options{.procs = 1}, [] {
    const std::uint64_t before = stats().total.claims;
    EXPECT_EQ(spawn(GoOptions{.stack_size = 1024 * 1024}, [] { return 7; }).join(), 7);
    EXPECT_EQ(stats().total.claims, before);
  });
}

constexpr std::size_t kKiB = 1024;

// Touches so much of the stack.
[[gnu::noinline]] int use_stack(std::size_t bytes) {
  auto* memory = static_cast<volatile char*>(__builtin_alloca(bytes));
  for (std::size_t i = 0; i < bytes; i += 512) memory[i] = 1;
  return memory[bytes / 1024 * 512];
}

// A joiner that has used so much itself.
[[gnu::noinline]] int join_below(std::size_t bytes, std::size_t child_uses) {
  auto* memory = static_cast<volatile char*>(__builtin_alloca(bytes + 1));
  for (std::size_t i = 0; i < bytes; i += 512) memory[i] = 1;
  memory[bytes] = 0;
  return spawn([child_uses] { return use_stack(child_uses); }).join() + memory[bytes];
}

// Three quarters of a stack of 256 KiB, of which the guard takes 16, and a little less for frames of the library.
constexpr std::size_t kGuaranteed = 160 * kKiB;

RT_TEST(JoinInPlace, AGoroutineHasThreeQuartersOfAStackHoweverMuchItsJoinerHasUsed) {
  for (std::size_t used = 0; used <= 200 * kKiB; used += 20 * kKiB)
    EXPECT_EQ(join_below(used, kGuaranteed), 1) << used;
}

RT_TEST(JoinInPlace, AGoroutineHasThreeQuartersOfAUsualStackWhenItsJoinersIsSmaller) {
  auto joiner =
      spawn(GoOptions{.stack_size = 64 * kKiB}, [] { return join_below(0, kGuaranteed); });
  EXPECT_EQ(joiner.join(), 1);
}

RT_TEST(JoinInPlace, AGoroutineRunByItsJoinerMayBlock) {
  for (int round = 0; round < 300; ++round) {
    WaitGroup gate;
    gate.add(1);
    auto handle = spawn([&gate, round] {
      gate.wait();
      return round;
    });
    go([&gate] { gate.done(); });
    ASSERT_EQ(handle.join(), round);
  }
}

RT_TEST(JoinInPlace, AGoroutineThatTheJoinerHasJustReadiedIsNotRunASecondTime) {
  WaitGroup gate;
  gate.add(1);
  int ran = 0;
  auto handle = spawn([&] {
    ++ran;
    gate.wait();
  });
  ASSERT_TRUE(eventually([] { return stats().waiting == 1; }));
  gate.done();  // now it is next on this P
  handle.join();
  EXPECT_EQ(ran, 1);
}

RT_TEST(JoinInPlace, AGoroutineRunByItsJoinerMayYield) {
  std::atomic<int> others{0};
  for (int i = 0; i < 20; ++i) go([&others] { others.fetch_add(1); });
  auto handle = spawn([] {
    for (int i = 0; i < 100; ++i) yield();
    return 7;
  });
  EXPECT_EQ(handle.join(), 7);
  EXPECT_TRUE(eventually([&] { return others.load() == 20; }));
}

RT_TEST(JoinInPlace, BlockedInPlaceBelowOtherJoinersAllStillReturn) {
  WaitGroup gate;
  gate.add(1);
  auto outer = spawn([&gate] {
    auto middle = spawn([&gate] {
      auto inner = spawn([&gate] {
        gate.wait();
        return 1;
      });
      return inner.join() + 1;
    });
    return middle.join() + 1;
  });
  go([&gate] {
    for (int i = 0; i < 10; ++i) yield();
    gate.done();
  });
  EXPECT_EQ(outer.join(), 3);
}

int chain(int length) {
  if (length == 0) return 0;
  return 1 + spawn([length] { return chain(length - 1); }).join();
}

RT_TEST(JoinInPlace, AChainOfTenThousandJoinsDoesNotOverflowTheStack) {
  EXPECT_EQ(chain(10'000), 10'000);
}

int tree(int depth) {
  if (depth == 0) return 1;
  auto left = spawn([depth] { return tree(depth - 1); });
  auto right = spawn([depth] { return tree(depth - 1); });
  return left.join() + right.join();
}

RT_TEST(JoinInPlace, AForkJoinTreeCountsItsLeaves) { EXPECT_EQ(tree(12), 4096); }

RT_TEST(JoinInPlace, AGoroutineRunDuringCatchHasExceptionsOfItsOwn) {
  try {
    throw std::runtime_error("mine");
  } catch (...) {
    spawn([] {
      EXPECT_EQ(std::current_exception(), nullptr);
      try {
        throw std::logic_error("the child's");
      } catch (const std::logic_error&) {
        yield();
      }
    }).join();
    try {
      throw;
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "mine");
    }
  }
}

RT_TEST(JoinFromPlainThreads, APlainThreadSpawnsAndJoins) {
  int sum = 0;
  PlainThread thread([&sum] {
    for (int i = 0; i < 100; ++i) sum += spawn([i] { return i; }).join();
  });
  thread.join();
  EXPECT_EQ(sum, 4950);
}

RT_TEST(JoinFromPlainThreads, APlainThreadJoinsAGoroutineThatBlocks) {
  WaitGroup gate;
  gate.add(1);
  auto handle = spawn([&gate] {
    gate.wait();
    return 7;
  });
  int got = 0;
  PlainThread thread([&got, mine = std::move(handle)]() mutable { got = mine.join(); });
  gate.done();
  thread.join();
  EXPECT_EQ(got, 7);
}

RT_TEST(JoinFromPlainThreads, ExceptionsReachThePlainThread) {
  bool caught = false;
  PlainThread thread([&caught] {
    try {
      spawn([] { throw std::runtime_error("for you"); }).join();
    } catch (const std::runtime_error&) {
      caught = true;
    }
  });
  thread.join();
  EXPECT_TRUE(caught);
}

RT_TEST(JoinFromPlainThreads, APlainThreadMayDetach) {
  std::atomic<bool> ran{false};
  PlainThread thread([&ran] { spawn([&ran] { ran = true; }).detach(); });
  thread.join();
  EXPECT_TRUE(eventually([&] { return ran.load(); }));
}

TEST(JoinAcrossRuns, AHandleThatOutlivesItsRunThrowsWhenJoined) {
  JoinHandle<int> handle;
  run(Options{.procs = 1}, [&] { handle = spawn([] { return 7; }); });
  EXPECT_TRUE(handle.joinable());
  EXPECT_THROW(handle.join(), std::logic_error);
}

TEST(JoinAcrossRuns, AHandleThatOutlivesItsRunMayBeDestroyedOrDetached) {
  JoinHandle<int> destroyed, detached;
  run(Options{.procs = 1}, [&] {
    destroyed = spawn([] { return 7; });
    detached = spawn([] { return 7; });
  });
  detached.detach();
  EXPECT_FALSE(detached.joinable());
}

TEST(JoinAcrossRuns, AHandleOfAnEarlierRunThrowsWhenJoinedInALaterOne) {
  JoinHandle<int> handle;
  run(Options{.procs = 1}, [&] { handle = spawn([] { return 7; }); });
  run(Options{.procs = 1}, [&] {
    auto mine = spawn([] { return 8; });
    EXPECT_THROW(handle.join(), std::logic_error);
    EXPECT_EQ(mine.join(), 8);
  });
}

TEST(JoinAcrossRuns, APlainThreadThatJoinsWhenRunEndsIsReleased) {
  for (int round = 0; round < 50; ++round) {
    WaitGroup never;
    never.add(1);
    std::optional<std::thread> joiner;
    std::atomic<bool> about_to_join{false};
    bool threw = false;
    run(Options{.procs = 2}, [&] {
      joiner.emplace([&, handle = spawn([&never] { never.wait(); })]() mutable {
        about_to_join = true;
        try {
          handle.join();
        } catch (const std::logic_error&) {
          threw = true;
        }
      });
      ASSERT_TRUE(eventually([&] { return about_to_join.load(); }));
    });
    joiner->join();
    ASSERT_TRUE(threw);
  }
}

// The entries that join leaves behind in the global queue are swept by whoever goes on spawning.
TEST(JoinHandle, SpawningAndJoiningForEverLeavesNoQueueOfUselessEntries) {
  run(Options{.procs = 1}, [] {
    for (int round = 0; round < 50; ++round) {
      std::vector<JoinHandle<int>> handles;
      for (int i = 0; i < 2'000; ++i) handles.push_back(spawn([i] { return i; }));
      for (int i = 0; i < 2'000; ++i) EXPECT_EQ(handles[static_cast<std::size_t>(i)].join(), i);
    }
    EXPECT_LT(stats().global_queue_length, 10'000u);  // of 100,000 that were spawned
  });
}

}  // namespace
}  // namespace magpie
