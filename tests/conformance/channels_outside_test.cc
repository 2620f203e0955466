// channels_outside_test.cc: channels between plain threads, without a runtime and after one.

#include <magpie/magpie.h>

#include <atomic>
#include <optional>
#include <thread>

#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using support::PlainThread;
using support::waiting_is;

// ---- plain threads

RT_TEST(Channels, PlainThreadsAndGoroutinesPassValuesToEachOther) {
  for (std::size_t capacity : {0, 4}) {
    Chan<int> there(capacity), back(capacity);
    PlainThread thread([=] {
      for (int value : there) back.send(value + 1);
      back.close();
    });
    for (int i = 0; i < 200; ++i) {
      there.send(i);
      ASSERT_EQ(back.recv(), i + 1);
    }
    there.close();
    EXPECT_EQ(back.recv(), std::nullopt);
    thread.join();
  }
}

TEST(ChannelsWithoutARuntime, PlainThreadsPassValuesToEachOther) {
  for (std::size_t capacity : {0, 4}) {
    Chan<int> c(capacity);
    std::thread sender([c] {
      for (int i = 0; i < 1000; ++i) c.send(i);
      c.close();
    });
    int next = 0;
    for (int value : c) ASSERT_EQ(value, next++);
    EXPECT_EQ(next, 1000);
    sender.join();
  }
}

TEST(ChannelsWithoutARuntime, CloseWakesThreads) {
  Chan<int> c;
  std::thread receiver([c] { EXPECT_EQ(c.recv(), std::nullopt); });
  c.close();
  receiver.join();
}

// ---- the end of run()

TEST(ChannelsAfterRun, ReceiversThatWereDroppedGetNothing) {
  Chan<int> c(1);
  run([&] {
    for (int i = 0; i < 10; ++i) go([&c] { (void)c.recv(); });
    ASSERT_TRUE(waiting_is(10));
  });
  EXPECT_TRUE(c.try_send(7));
  EXPECT_FALSE(c.try_send(8));
  EXPECT_EQ(c.recv(), 7);
  std::thread receiver([&c] { EXPECT_EQ(c.recv(), 9); });
  c.send(9);
  receiver.join();
}

TEST(ChannelsAfterRun, SendersThatWereDroppedSendNothing) {
  Chan<int> c;
  run([&] {
    for (int i = 0; i < 10; ++i) go([&c, i] { c.send(i); });
    ASSERT_TRUE(waiting_is(10));
  });
  EXPECT_EQ(c.try_recv(), std::nullopt);
  run([&] {
    auto sender = spawn([&] { c.send(7); });
    EXPECT_EQ(c.recv(), 7);
  });
}

TEST(ChannelsAfterRun, CloseDoesNotWakeTheDropped) {
  Chan<int> c;
  run([&] {
    for (int i = 0; i < 10; ++i) go([&c] { (void)c.recv(); });
    ASSERT_TRUE(waiting_is(10));
  });
  c.close();
  EXPECT_EQ(c.recv(), std::nullopt);
}

TEST(ChannelsAfterRun, AThreadThatWaitsAmongTheDroppedIsStillServed) {
  Chan<int> c;
  std::atomic<bool> thread_received{false};
  std::optional<std::thread> thread;
  run([&] {
    go([&c] { (void)c.recv(); });
    ASSERT_TRUE(waiting_is(1));
    thread.emplace([&] {
      EXPECT_EQ(c.recv(), 7);
      thread_received = true;
    });
    // The thread may come before or after the second goroutine.
    go([&c] { (void)c.recv(); });
    ASSERT_TRUE(waiting_is(2));
  });
  run([&] { c.send(7); });
  thread->join();
  EXPECT_TRUE(thread_received);
}

TEST(ChannelsAfterRun, ThreadsMayUseAChannelWhileRunEndsAgainAndAgain) {
  // Sends meet receivers that are about to be dropped.
  Chan<int> c;
  std::atomic<bool> over{false};
  std::thread thread([&] {
    while (!over) (void)c.try_send(1);
  });
  for (int round = 0; round < support::scaled(300); ++round) {
    run(Options{.procs = 2}, [&] {
      for (int i = 0; i < 5; ++i)
        go([&c] {
          while (c.recv()) {
          }
        });
      for (int i = 0; i < 10; ++i) yield();
    });
  }
  over = true;
  thread.join();
}

}  // namespace
}  // namespace magpie
