// A wait with a deadline ends in exactly one way: woken, or time was up.
#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <atomic>
#include <mutex>

#include "base/clock.h"
#include "base/lock.h"
#include "sched/entry.h"
#include "sched/waiter.h"
#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie::sched {
namespace {

using support::eventually;

// Room for one waiter, under a lock.
struct Place {
  base::UncheckedLock lock;
  Waiter* waiter = nullptr;  // guarded by lock

  // True: woken.
  bool wait(std::int64_t deadline_ns) {
    Entry inside;
    Waiter self;
    lock.lock();
    waiter = &self;
    return self.wait_until(
        deadline_ns, WaitReason::semaphore,
        [](Waiter&, void* place) {
          static_cast<Place*>(place)->lock.unlock();
          return true;
        },
        [](Waiter& me, void* place) { return static_cast<Place*>(place)->take(&me); }, this);
  }
  bool take(Waiter* wanted) {
    std::lock_guard hold(lock);
    if (waiter != wanted) return false;
    waiter = nullptr;
    return true;
  }
  // True: somebody waited.
  bool wake() {
    Entry inside;
    lock.lock();
    Waiter* woken = std::exchange(waiter, nullptr);
    lock.unlock();
    if (woken != nullptr) woken->wake();
    return woken != nullptr;
  }
};

RT_TEST(WaitUntil, ReturnsFalseOnceTheTimeIsUpAndNotBefore) {
  Place place;
  for (std::int64_t ns : {-5, 0, 1'000, 500'000}) {
    std::int64_t deadline = base::now_ns() + ns;
    EXPECT_FALSE(place.wait(deadline));
    EXPECT_GE(base::now_ns(), deadline);
    EXPECT_EQ(place.waiter, nullptr);
  }
}

RT_TEST(WaitUntil, ReturnsTrueWhenWokenBefore) {
  Place place;
  for (std::int64_t deadline : {base::now_ns() + 3'600'000'000'000, kNever}) {
    WaitGroup waker;
    waker.go([&] { EXPECT_TRUE(eventually([&] { return place.wake(); })); });
    EXPECT_TRUE(place.wait(deadline));
    waker.wait();
  }
  EXPECT_EQ(stats().timers, 0U);  // the first one's is gone
}

TEST(WaitUntil, WorksOnAPlainThread) {
  Place place;
  EXPECT_FALSE(place.wait(base::now_ns() + 100'000));
  support::PlainThread waker([&] { EXPECT_TRUE(eventually([&] { return place.wake(); })); });
  EXPECT_TRUE(place.wait(base::now_ns() + 3'600'000'000'000));
}

// The waker and the deadline come at the same time, again and again.
void race_waker_and_deadline() {
  Place place;
  std::atomic<bool> stop{false};
  std::atomic<int> wakes{0};
  WaitGroup waker;
  waker.go([&] {
    while (!stop) {
      if (place.wake()) ++wakes;
      yield();
    }
  });
  int woken = 0;
  int rounds = support::scaled(4000);
  for (int i = 0; i < rounds; ++i) {
    if (place.wait(base::now_ns() + i % 3 * 4'000)) ++woken;
  }
  stop = true;
  waker.wait();
  EXPECT_EQ(woken, wakes);
}

RT_TEST(WaitUntil, EveryWakeUpCountsEvenWhenTheDeadlineComesAtTheSameTime) {
  race_waker_and_deadline();
}

TEST(WaitUntil, OnAPlainThreadEveryWakeUpCountsToo) {
  run(Options{.procs = 2}, [] { support::PlainThread thread([] { race_waker_and_deadline(); }); });
}

}  // namespace
}  // namespace magpie::sched
