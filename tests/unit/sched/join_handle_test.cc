// join_handle_test.cc: spawn() and what its handle does.

#include <magpie/magpie.h>

#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
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

RT_TEST(JoinHandle, AReferenceIsAPointerWhereTheGoroutineMayGoOn) {
  int variable = 1;
  std::error_code error;
  auto handle = spawn([&variable]() -> int& { return variable; });
  EXPECT_EQ(handle.join(Context::background(), error), &variable);
  EXPECT_FALSE(handle.joinable());

  Chan<void> gate;
  Context over = Context::background().with_cancel();
  over.cancel();
  auto waits = spawn([&, gate]() -> const int& {
    gate.recv();
    return variable;
  });
  EXPECT_EQ(waits.join(over, error), nullptr);
  EXPECT_EQ(error, std::errc::operation_canceled);
  gate.close();
  EXPECT_EQ(&waits.join(), &variable);
}

RT_TEST(JoinHandle, AValueMayBeAnRvalueReference) {
  int variable = 1;
  auto same = [&variable]() -> int&& { return std::move(variable); };
  int&& joined = spawn(same).join();
  EXPECT_EQ(&joined, &variable);
  EXPECT_EQ(spawn(same).try_join_for(support::kGenerousLimit), &variable);
}

TEST(Run, ReturnsReferencesOfBothKinds) {
  int variable = 1;
  EXPECT_EQ(&run([&]() -> int& { return variable; }), &variable);
  int&& moved = run([&]() -> int&& { return std::move(variable); });
  EXPECT_EQ(&moved, &variable);
}

}  // namespace
}  // namespace magpie
