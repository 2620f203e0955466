// event_test.cc: one thread sleeps until another sets the event.

#include "base/event.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "support/thread_state.h"

namespace magpie::base {
namespace {

TEST(Event, WaitReturnsAtOnceIfItWasSetBeforeAndClearsIt) {
  Event event;
  EXPECT_FALSE(event.is_set());
  event.set();
  EXPECT_TRUE(event.is_set());
  event.wait();
  EXPECT_FALSE(event.is_set());
}

TEST(Event, ASecondSetBeforeTheWaitChangesNothing) {
  Event event;
  event.set();
  event.set();
  event.wait();
  EXPECT_FALSE(event.is_set());
}

TEST(Event, AWaitingThreadSleepsInTheKernelUntilItIsSet) {
  Event event;
  std::atomic<pid_t> waiter{0};
  std::atomic<bool> through{false};
  std::jthread thread([&] {
    waiter = gettid();
    event.wait();
    through = true;
  });
  while (waiter == 0 || !support::thread_sleeps(waiter)) std::this_thread::yield();
  EXPECT_FALSE(through);
  event.set();
  thread.join();
  EXPECT_TRUE(through);
  EXPECT_FALSE(event.is_set());
}

TEST(Event, WhatWasWrittenBeforeSetIsSeenAfterWait) {
  constexpr int kRounds = 10'000;
  Event ping, pong;
  int ball = 0;  // plain: the events order the accesses
  std::jthread other([&] {
    for (int round = 0; round < kRounds; ++round) {
      ping.wait();
      ++ball;
      pong.set();
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_EQ(ball, 2 * round);
    ++ball;
    ping.set();
    pong.wait();
  }
  EXPECT_EQ(ball, 2 * kRounds);
}

TEST(Event, TheWaiterMayDestroyItAsSoonAsWaitReturned) {
  constexpr int kRounds = 2'000;
  std::atomic<Event*> shared{nullptr};
  std::jthread setter([&] {
    for (int round = 0; round < kRounds; ++round) {
      Event* event;
      while ((event = shared.exchange(nullptr)) == nullptr) std::this_thread::yield();
      event->set();
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    auto event = std::make_unique<Event>();
    shared = event.get();
    event->wait();
  }
}

}  // namespace
}  // namespace magpie::base
