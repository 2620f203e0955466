// channels_test.cc: what a channel promises, as the Go language has it.

#include <magpie/magpie.h>

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using support::eventually;
using support::waiting_is;

// ---- unbuffered

RT_TEST(Channels, AnUnbufferedSendWaitsForItsReceiver) {
  Chan<int> c;
  std::atomic<bool> sent{false};
  auto sender = spawn([&] {
    c.send(7);
    sent = true;
  });
  ASSERT_TRUE(waiting_is(1));
  EXPECT_FALSE(sent);
  EXPECT_EQ(c.recv(), 7);
  sender.join();
  EXPECT_TRUE(sent);
}

RT_TEST(Channels, AnUnbufferedReceiveWaitsForItsSender) {
  Chan<int> c;
  auto receiver = spawn([&] { return c.recv(); });
  ASSERT_TRUE(waiting_is(1));
  c.send(7);
  EXPECT_EQ(receiver.join(), 7);
}

RT_TEST(Channels, WhatWasWrittenBeforeASendIsSeenAfterItsReceive) {
  Chan<void> c;
  int written = 0;  // plain
  go([&] {
    written = 7;
    c.send();
  });
  EXPECT_TRUE(c.recv());
  EXPECT_EQ(written, 7);
}

RT_TEST(Channels, WhatWasWrittenBeforeAReceiveIsSeenAfterAnUnbufferedSend) {
  Chan<void> c;
  int written = 0;  // plain
  go([&] {
    written = 7;
    c.recv();
  });
  c.send();
  EXPECT_EQ(written, 7);
}

RT_TEST(Channels, TheKthReceiveHappensBeforeTheSendThatFindsItsRoom) {
  Chan<void> room(2);  // as a semaphore of two
  int shared[2] = {};  // plain, each guarded by ...
  Chan<int> free(2);   // ... who took its index
  free.send(0);
  free.send(1);
  WaitGroup all;
  for (int i = 0; i < 8; ++i) {
    all.go([&] {
      for (int n = 0; n < support::scaled(200); ++n) {
        room.send();
        int mine = *free.recv();
        ++shared[mine];
        free.send(mine);
        room.recv();
      }
    });
  }
  all.wait();
  EXPECT_EQ(shared[0] + shared[1], 8 * support::scaled(200));
}

// ---- buffered

RT_TEST(Channels, ABufferedSendDoesNotWaitWhileThereIsRoom) {
  Chan<int> c(3);
  EXPECT_EQ(c.capacity(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(c.size(), static_cast<std::size_t>(i));
    c.send(i);
  }
  EXPECT_EQ(c.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(c.recv(), i);
  EXPECT_EQ(c.size(), 0u);
}

RT_TEST(Channels, ASendToAFullBufferWaitsForRoom) {
  Chan<int> c(1);
  c.send(1);
  auto sender = spawn([&] { c.send(2); });
  ASSERT_TRUE(waiting_is(1));
  EXPECT_EQ(c.recv(), 1);
  EXPECT_EQ(c.recv(), 2);
  sender.join();
}

RT_TEST(Channels, ValuesArriveInTheOrderInWhichTheyWereSent) {
  for (std::size_t capacity : {0, 1, 2, 3, 7, 128}) {
    Chan<int> c(capacity);
    const int count = support::scaled(5000);
    go([c, count] {
      for (int i = 0; i < count; ++i) c.send(i);
      c.close();
    });
    int next = 0;
    for (int value : c) ASSERT_EQ(value, next++);
    EXPECT_EQ(next, count);
  }
}

RT_TEST(Channels, AWaitingSendersValueComesAfterWhatIsInTheBuffer) {
  Chan<int> c(2);
  c.send(1);
  c.send(2);
  auto sender = spawn([&] { c.send(3); });
  ASSERT_TRUE(waiting_is(1));
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(c.recv(), i);
}

// ---- who waits

RT_TEST(Channels, WaitingReceiversAreServedInTheOrderInWhichTheyCame) {
  Chan<int> c;
  std::vector<JoinHandle<std::optional<int>>> receivers;
  for (int i = 0; i < 5; ++i) {
    receivers.push_back(spawn([&] { return c.recv(); }));
    ASSERT_TRUE(waiting_is(static_cast<std::size_t>(i) + 1));
  }
  for (int i = 0; i < 5; ++i) c.send(i);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(receivers[static_cast<std::size_t>(i)].join(), i);
}

RT_TEST(Channels, WaitingSendersAreServedInTheOrderInWhichTheyCame) {
  Chan<int> c;
  std::vector<JoinHandle<void>> senders;
  for (int i = 0; i < 5; ++i) {
    senders.push_back(spawn([&c, i] { c.send(i); }));
    ASSERT_TRUE(waiting_is(static_cast<std::size_t>(i) + 1));
  }
  for (int i = 0; i < 5; ++i) EXPECT_EQ(c.recv(), i);
}

// ---- close

RT_TEST(Channels, ReceivingFromAClosedChannelDrainsTheBufferAndThenReportsClosed) {
  Chan<int> c(2);
  c.send(7);
  c.close();
  EXPECT_TRUE(c.closed());
  EXPECT_EQ(c.recv(), 7);
  EXPECT_EQ(c.recv(), std::nullopt);  // at once, and ever after
  EXPECT_EQ(c.recv(), std::nullopt);
}

RT_TEST(Channels, CloseWakesEveryReceiver) {
  Chan<int> c;
  WaitGroup woken;
  for (int i = 0; i < 10; ++i) woken.go([&] { EXPECT_EQ(c.recv(), std::nullopt); });
  ASSERT_TRUE(waiting_is(10));
  c.close();
  woken.wait();
}

RT_TEST(Channels, CloseMakesEveryWaitingSenderThrow) {
  Chan<int> c(1);
  c.send(1);
  WaitGroup woken;
  for (int i = 0; i < 10; ++i) woken.go([&] { EXPECT_THROW(c.send(2), ClosedChannel); });
  ASSERT_TRUE(waiting_is(10));
  c.close();
  woken.wait();
  EXPECT_EQ(c.recv(), 1);
  EXPECT_EQ(c.recv(), std::nullopt);
}

RT_TEST(Channels, SendingOnAClosedChannelThrows) {
  Chan<int> c(1);
  c.close();
  EXPECT_THROW(c.send(1), ClosedChannel);
  EXPECT_THROW((void)c.try_send(1), ClosedChannel);
  EXPECT_THROW(c.send(1), std::logic_error);
}

RT_TEST(Channels, ClosingTwiceThrows) {
  Chan<int> c;
  c.close();
  EXPECT_THROW(c.close(), ClosedChannel);
  EXPECT_THROW(Chan<int>::nil().close(), std::logic_error);
}

RT_TEST(Channels, WhatWasWrittenBeforeCloseIsSeenByReceiversThatItEnds) {
  Chan<void> c;
  int written = 0;  // plain
  go([&] {
    written = 7;
    c.close();
  });
  EXPECT_FALSE(c.recv());
  EXPECT_EQ(written, 7);
}

RT_TEST(Channels, ARangeLoopEndsWhenTheChannelIsClosedAndDrained) {
  Chan<int> c(10);
  for (int i = 0; i < 10; ++i) c.send(i);
  c.close();
  int sum = 0;
  for (auto& value : c) sum += value;
  EXPECT_EQ(sum, 45);
  for (auto& value : c) FAIL() << value;
}

// ---- nil

RT_TEST(Channels, TheNilChannelRefusesEverythingThatDoesNotWait) {
  Chan<int> c = Chan<int>::nil();
  EXPECT_FALSE(c.try_send(1));
  EXPECT_EQ(c.try_recv(), std::nullopt);
  EXPECT_EQ(c.size(), 0u);
  EXPECT_EQ(c.capacity(), 0u);
  EXPECT_FALSE(c.closed());
}

TEST(Channels, TheNilChannelBlocksForEver) {
  run(Options{.procs = 2, .on_deadlock = DeadlockPolicy::ignore}, [] {
    go([] { Chan<int>::nil().send(1); });
    go([] { (void)Chan<int>::nil().recv(); });
    go([] { Chan<void>::nil().recv(); });
    ASSERT_TRUE(waiting_is(3));
    for (int i = 0; i < 100; ++i) yield();
    EXPECT_EQ(stats().waiting, 3u);
  });
}

// ---- try_

RT_TEST(Channels, TrySendIsRefusedWhenNobodyWaitsAndThereIsNoRoom) {
  Chan<int> unbuffered, full(1);
  full.send(1);
  EXPECT_FALSE(unbuffered.try_send(2));
  EXPECT_FALSE(full.try_send(2));
  EXPECT_EQ(full.recv(), 1);
  EXPECT_TRUE(full.try_send(2));
  EXPECT_EQ(full.recv(), 2);
}

RT_TEST(Channels, TrySendServesAWaitingReceiver) {
  Chan<int> c;
  auto receiver = spawn([&] { return c.recv(); });
  ASSERT_TRUE(waiting_is(1));
  EXPECT_TRUE(c.try_send(7));
  EXPECT_EQ(receiver.join(), 7);
}

RT_TEST(Channels, TryRecvIsRefusedWhenThereIsNothing) {
  Chan<int> unbuffered, empty(1);
  EXPECT_EQ(unbuffered.try_recv(), std::nullopt);
  EXPECT_EQ(empty.try_recv(), std::nullopt);
  empty.send(1);
  EXPECT_EQ(empty.try_recv(), 1);
}

RT_TEST(Channels, TryRecvTakesFromAWaitingSender) {
  Chan<int> c;
  auto sender = spawn([&] { c.send(7); });
  ASSERT_TRUE(waiting_is(1));
  EXPECT_EQ(c.try_recv(), 7);
  sender.join();
}

RT_TEST(Channels, ARefusedTrySendLeavesTheValueUntouched) {
  Chan<std::unique_ptr<int>> c;
  auto value = std::make_unique<int>(7);
  EXPECT_FALSE(c.try_send(value));
  ASSERT_NE(value, nullptr);
  EXPECT_FALSE(c.try_send(std::move(value)));
  ASSERT_NE(value, nullptr);
  c.close();
  EXPECT_THROW((void)c.try_send(value), ClosedChannel);
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(*value, 7);
}

// ---- handles

RT_TEST(Channels, CopiesNameTheSameChannel) {
  const Chan<int> c(1);
  Chan<int> copy = c;
  EXPECT_TRUE(copy == c);
  EXPECT_FALSE(copy == Chan<int>(1));
  EXPECT_TRUE(Chan<int>::nil() == Chan<int>::nil());
  copy.send(7);
  EXPECT_EQ(c.recv(), 7);
  Chan<int> moved = std::move(copy);
  EXPECT_TRUE(moved == c);
  EXPECT_TRUE(copy == Chan<int>::nil());  // NOLINT: that is what is tested
}

RT_TEST(Channels, AChannelMayBeSentOverAChannel) {
  Chan<Chan<int>> requests;
  go([requests] {
    for (auto& reply : requests) reply.send(7);
  });
  Chan<int> reply;
  requests.send(reply);
  EXPECT_EQ(reply.recv(), 7);
  requests.close();
}

RT_TEST(Channels, AChannelMayBeDroppedByAllAsSoonAsTheyAreThrough) {
  for (int round = 0; round < support::scaled(3000); ++round) {
    Chan<int> c;
    go([c] { c.send(7); });
    ASSERT_EQ(c.recv(), 7);
  }
}

// ---- signals

RT_TEST(Channels, SignalsAreCounted) {
  Chan<void> c(3);
  c.send();
  EXPECT_TRUE(c.try_send());
  c.send();
  EXPECT_FALSE(c.try_send());
  EXPECT_EQ(c.size(), 3u);
  EXPECT_TRUE(c.recv());
  EXPECT_TRUE(c.try_recv());
  c.close();
  EXPECT_TRUE(c.recv());
  EXPECT_FALSE(c.recv());
  EXPECT_FALSE(c.try_recv());
  EXPECT_THROW(c.send(), ClosedChannel);
}

// ---- fairness

RT_TEST(Channels, APairThatPlaysPingPongDoesNotStarveTheOthers) {
  Chan<void> there, back;
  std::atomic<bool> stop{false};
  WaitGroup players;
  players.go([&] {
    while (!stop) {
      there.send();
      back.recv();
    }
    there.close();
  });
  players.go([&] {
    while (there.recv()) back.send();
  });
  std::atomic<int> others{0};
  for (int i = 0; i < 100; ++i) {
    go([&] {
      for (int n = 0; n < 10; ++n) yield();
      others.fetch_add(1);
    });
  }
  EXPECT_TRUE(eventually([&] { return others == 100; }));
  stop = true;
  players.wait();
}

RT_TEST(Chan, ALiteralZeroIsACapacity) {
  EXPECT_EQ(Chan<int>(0).capacity(), 0u);
  EXPECT_NE(Chan<int>(0), Chan<int>::nil());
  EXPECT_NE(Chan<void>(0), Chan<void>::nil());
}

}  // namespace
}  // namespace magpie
