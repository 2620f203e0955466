// cond_var_test.cc: waiting until another says that something has changed.

#include <magpie/magpie.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>

#include "base/lock.h"
#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/sleeping_thread.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::eventually;
using support::PlainThread;
using support::waiting_is;

constinit CondVar static_changed;  // needs no constructor at run time

RT_TEST(CondVar, AWaiterIsWokenAndHoldsItsLockAgain) {
  Mutex mutex;
  bool ready = false;
  auto waiter = spawn([&] {
    std::unique_lock hold(mutex);
    static_changed.wait(hold, [&] { return ready; });
    EXPECT_TRUE(hold.owns_lock());
    EXPECT_FALSE(mutex.try_lock());
  });
  ASSERT_TRUE(waiting_is(1));
  {
    std::lock_guard hold(mutex);
    ready = true;
  }
  static_changed.notify_one();
  waiter.join();
}

RT_TEST(CondVar, ANotificationWithoutWaitersIsNotKept) {
  Mutex mutex;
  CondVar changed;
  changed.notify_one();
  changed.notify_all();
  std::unique_lock hold(mutex);
  EXPECT_EQ(changed.wait_for(hold, 1ms), std::cv_status::timeout);
  EXPECT_TRUE(hold.owns_lock());
}

RT_TEST(CondVar, WaitersAreNotifiedInTheOrderTheyCame) {
  Mutex mutex;
  CondVar changed;
  std::string order;
  WaitGroup all;
  for (char name : {'a', 'b', 'c', 'd', 'e'}) {
    all.go([&, name] {
      std::unique_lock hold(mutex);
      changed.wait(hold);
      order += name;
    });
    ASSERT_TRUE(waiting_is(static_cast<std::size_t>(name - 'a') + 1));
  }
  for (std::size_t n = 1; n <= 5; ++n) {
    changed.notify_one();
    ASSERT_TRUE(eventually([&] {
      std::lock_guard hold(mutex);
      return order.size() == n;
    }));
  }
  all.wait();
  EXPECT_EQ(order, "abcde");
}

RT_TEST(CondVar, NotifyOneWakesOneAndNotifyAllTheRest) {
  Mutex mutex;
  CondVar changed;
  std::atomic<int> woken{0};
  WaitGroup all;
  for (int i = 0; i < 20; ++i) {
    all.go([&] {
      std::unique_lock hold(mutex);
      changed.wait(hold);
      ++woken;
    });
  }
  ASSERT_TRUE(waiting_is(20));
  changed.notify_one();
  ASSERT_TRUE(eventually([&] { return woken == 1; }));
  for (int i = 0; i < 100; ++i) yield();
  EXPECT_EQ(woken, 1);
  changed.notify_all();
  all.wait();
}

RT_TEST(CondVar, OneThatHasReleasedItsLockIsNotifiedAlsoBeforeItSleeps) {
  Mutex mutex;
  CondVar changed;
  for (int round = 0; round < support::scaled(3000); ++round) {
    bool waits = false;
    auto waiter = spawn([&] {
      std::unique_lock hold(mutex);
      waits = true;
      changed.wait(hold);
    });
    bool seen = false;
    while (!seen) {
      yield();
      std::lock_guard hold(mutex);  // it got this by the waiter's unlock: the waiter waits
      seen = waits;
    }
    changed.notify_one();
    waiter.join();
  }
}

RT_TEST(CondVar, ItWorksWithLocksOfAnyKind) {
  CondVar changed;
  bool ready = false;
  Mutex mutex;
  RWMutex rw_mutex;
  auto set = [&] {
    ready = true;
    changed.notify_all();
  };
  mutex.lock();
  auto other = spawn([&] {
    std::lock_guard hold(mutex);
    set();
  });
  changed.wait(mutex, [&] { return ready; });
  mutex.unlock();
  other.join();

  ready = false;
  std::shared_lock shared(rw_mutex);
  auto writer = spawn([&] {
    std::lock_guard hold(rw_mutex);
    set();
  });
  changed.wait(shared, [&] { return ready; });
  writer.join();
}

RT_TEST(CondVar, AWaitWithATimeLimitSaysWhetherTimeWasUp) {
  Mutex mutex;
  CondVar changed;
  std::unique_lock hold(mutex);
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(changed.wait_for(hold, 2ms), std::cv_status::timeout);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 2ms);
  EXPECT_EQ(changed.wait_until(hold, start), std::cv_status::timeout);
  EXPECT_FALSE(changed.wait_for(hold, 1ms, [] { return false; }));
  EXPECT_TRUE(changed.wait_until(hold, start, [] { return true; }));

  auto notifier = spawn([&] {
    std::lock_guard locked(mutex);
    changed.notify_one();
  });
  EXPECT_EQ(changed.wait_for(hold, 60s), std::cv_status::no_timeout);
  hold.unlock();
  notifier.join();
}

// One that is told at the moment when its time is up says that it was notified, or the next one is.
RT_TEST(CondVar, NoNotificationIsLostToAWaiterWhoseTimeIsUp) {
  Mutex mutex;
  CondVar changed;
  for (int round = 0; round < support::scaled(1000); ++round) {
    int waiting = 0;
    auto wait_with = [&](auto limit) {
      std::unique_lock hold(mutex);
      ++waiting;
      return changed.wait_for(hold, limit);
    };
    auto waits = [&](int n) {
      return eventually([&] {
        std::lock_guard hold(mutex);
        return waiting == n;
      });
    };
    auto impatient = spawn([&] { return wait_with(std::chrono::microseconds(round % 100)); });
    ASSERT_TRUE(waits(1));
    auto patient = spawn([&] { return wait_with(1h); });
    ASSERT_TRUE(waits(2));
    changed.notify_one();
    if (impatient.join() == std::cv_status::no_timeout) changed.notify_one();
    EXPECT_EQ(patient.join(), std::cv_status::no_timeout);
  }
}

struct RefusingLock {
  void lock() {}
  void unlock() { throw std::runtime_error("no"); }
};

RT_TEST(CondVar, AWaiterWhoseLockCannotBeReleasedDoesNotWait) {
  CondVar changed;
  RefusingLock refusing;
  EXPECT_THROW(changed.wait(refusing), std::runtime_error);
  Mutex mutex;
  auto waiter = spawn([&] {
    std::lock_guard hold(mutex);
    changed.wait(mutex);
  });
  ASSERT_TRUE(waiting_is(1));
  changed.notify_one();  // to the one that does wait
  waiter.join();
}

RT_TEST(CondVar, AStopRequestEndsTheWait) {
  Mutex mutex;
  CondVar changed;
  for (int round = 0; round < support::scaled(500); ++round) {
    std::stop_source source;
    auto waiter = spawn([&] {
      std::unique_lock hold(mutex);
      return changed.wait(hold, source.get_token(), [] { return false; });
    });
    if (round % 2 == 0) yield();
    source.request_stop();
    EXPECT_FALSE(waiter.join());
  }
  std::unique_lock hold(mutex);
  EXPECT_TRUE(changed.wait(hold, std::stop_token(), [] { return true; }));
}

// The standard library knows by its thread who runs a callback. The goroutine has no P when it
// asks, so that it would have to wait for one as it notifies, and could go on elsewhere.
RT_TEST(CondVar, AStopRequestNotifiesWithoutLeavingItsThread) {
  Mutex mutex;
  CondVar changed;
  std::stop_source source;
  auto waiter = spawn([&] {
    std::unique_lock hold(mutex);
    return changed.wait(hold, source.get_token(), [] { return false; });
  });
  ASSERT_TRUE(waiting_is(1));
  std::atomic<int> turns{0};
  std::atomic<bool> enough{false};
  auto other = spawn([&] {
    while (!enough) {
      ++turns;
      yield();
    }
  });
  blocking([&] {
    int before = turns;
    while (turns == before) std::this_thread::yield();
    pid_t here = gettid();
    source.request_stop();
    EXPECT_EQ(gettid(), here);
  });
  enough = true;
  EXPECT_FALSE(waiter.join());
  other.join();
}

RT_TEST(CondVar, AStopRequestWakesOnlyThoseWhoWaitWithItsToken) {
  Mutex mutex;
  CondVar changed;
  std::stop_source source, other_source;
  std::atomic<int> woken{0};
  auto wait_with = [&](std::stop_token stop) {
    return spawn([&, stop] {
      std::unique_lock hold(mutex);
      (void)changed.wait(hold, stop, [] { return false; });
      ++woken;
    });
  };
  auto without = spawn([&] {
    std::unique_lock hold(mutex);
    changed.wait(hold);
    ++woken;
  });
  auto with_time = spawn([&] {
    std::unique_lock hold(mutex);
    EXPECT_EQ(changed.wait_for(hold, 1h), std::cv_status::no_timeout);
    ++woken;
  });
  auto with_another = wait_with(other_source.get_token());
  auto first = wait_with(source.get_token());
  auto second = wait_with(source.get_token());
  ASSERT_TRUE(waiting_is(5));
  source.request_stop();
  first.join();
  second.join();
  EXPECT_TRUE(waiting_is(3));
  EXPECT_EQ(woken, 2);
  other_source.request_stop();
  with_another.join();
  EXPECT_TRUE(waiting_is(2));
  changed.notify_all();
  without.join();
  with_time.join();
}

RT_TEST(CondVar, AWaitWithAStopTokenEndsWhenItsTimeIsUp) {
  Mutex mutex;
  CondVar changed;
  std::stop_source source;
  std::unique_lock hold(mutex);
  auto never = [] { return false; };
  EXPECT_FALSE(changed.wait_for(hold, source.get_token(), 1ms, never));
  EXPECT_FALSE(
      changed.wait_until(hold, source.get_token(), std::chrono::steady_clock::now(), never));
  EXPECT_TRUE(changed.wait_for(hold, source.get_token(), 0ms, [] { return true; }));
  EXPECT_TRUE(hold.owns_lock());
  bool ready = false;
  auto notifier = spawn([&] {
    std::lock_guard its_hold(mutex);
    ready = true;
    changed.notify_one();
  });
  EXPECT_TRUE(changed.wait_for(hold, source.get_token(), 1h, [&] { return ready; }));
  auto stopper = spawn([&] { source.request_stop(); });
  EXPECT_FALSE(changed.wait_for(hold, source.get_token(), 1h, never));
  notifier.join();
  stopper.join();
}

// One that withdrew has taken itself off the list, which is empty now, and has yet to release the
// list's lock: the first member.
TEST(CondVarWithoutARuntime, IsNotDestroyedUnderOneThatLeavesIt) {
  static_assert(std::is_standard_layout_v<CondVar>);
  std::optional<CondVar> changed(std::in_place);
  auto& lock = reinterpret_cast<base::Lock&>(*changed);
  lock.lock();
  support::SleepingThread destroyer([&] { changed.reset(); });
  EXPECT_FALSE(destroyer.is_over());
  lock.unlock();
  EXPECT_TRUE(destroyer.goes_on());
}

RT_TEST(CondVar, ItMayBeDestroyedOnceAllHaveBeenNotified) {
  Mutex mutex;
  for (int round = 0; round < support::scaled(1000); ++round) {
    auto changed = std::make_unique<CondVar>();
    int waiting = 0;
    WaitGroup all;
    for (int i = 0; i < 3; ++i) {
      all.go([&, raw = changed.get(), i] {
        std::unique_lock hold(mutex);
        ++waiting;
        if (i == 0) {
          raw->wait_for(hold, 5us);
        } else {
          raw->wait(hold);
        }
      });
    }
    bool seen = false;
    while (!seen) {
      yield();
      std::lock_guard hold(mutex);
      seen = waiting == 3;
    }
    changed->notify_all();
    changed.reset();
    all.wait();
  }
}

RT_TEST(CondVar, PlainThreadsAndGoroutinesShareIt) {
  Mutex mutex;
  CondVar changed;
  std::deque<int> queue;
  int sum = 0;
  auto consume = [&] {
    for (;;) {
      std::unique_lock hold(mutex);
      changed.wait(hold, [&] { return !queue.empty(); });
      int value = queue.front();
      if (value == 0) return;  // for everybody
      queue.pop_front();
      sum += value;
    }
  };
  std::optional<PlainThread> threads[2];
  for (auto& thread : threads) thread.emplace(consume);
  WaitGroup all;
  for (int i = 0; i < 2; ++i) all.go(consume);
  for (int i = 1; i <= 300; ++i) {
    std::lock_guard hold(mutex);
    queue.push_back(i);
    changed.notify_one();
  }
  {
    std::lock_guard hold(mutex);
    queue.push_back(0);
    changed.notify_all();
  }
  all.wait();
  for (auto& thread : threads) thread->join();
  EXPECT_EQ(sum, 300 * 301 / 2);
}

TEST(CondVarWithoutARuntime, PlainThreadsUseItAmongThemselves) {
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  std::thread other([&] {
    std::lock_guard hold(mutex);
    ready = true;
    changed.notify_one();
  });
  std::unique_lock hold(mutex);
  changed.wait(hold, [&] { return ready; });
  EXPECT_EQ(changed.wait_for(hold, 1ms), std::cv_status::timeout);
  hold.unlock();
  other.join();
}

TEST(CondVarAfterRun, NotificationsDoNotTouchWaitersThatWereDropped) {
  Mutex mutex;
  CondVar changed;
  auto leave_waiting = [&] {
    run([&] {
      for (int i = 0; i < 5; ++i) {
        go([&] {
          std::unique_lock hold(mutex);
          changed.wait(hold);
        });
      }
      ASSERT_TRUE(waiting_is(5));
    });
  };
  leave_waiting();
  changed.notify_one();
  changed.notify_all();
  leave_waiting();
  run([&] { changed.notify_all(); });
  leave_waiting();
  std::atomic<bool> woken{false};
  std::thread thread([&] {
    std::unique_lock hold(mutex);
    changed.wait(hold);
    woken = true;
  });
  ASSERT_TRUE(eventually([&] {
    changed.notify_one();
    return woken.load();
  }));
  thread.join();
  leave_waiting();  // and it is destroyed
}

// The time of a thread is up when the goroutines around it in line have been dropped.
TEST(CondVarAfterRun, AThreadWhoseTimeIsUpDoesNotTouchDroppedNeighbours) {
  Mutex mutex;
  CondVar changed;
  std::thread thread;
  run([&] {
    auto start_two = [&](std::size_t so_far) {
      for (int i = 0; i < 2; ++i)
        go([&] {
          std::unique_lock hold(mutex);
          changed.wait(hold);
        });
      ASSERT_TRUE(waiting_is(so_far + 2));
    };
    start_two(0);
    thread = std::thread([&] {
      std::unique_lock hold(mutex);
      EXPECT_EQ(changed.wait_for(hold, 20ms), std::cv_status::timeout);
    });
    sleep_for(2ms);
    start_two(2);
  });
  thread.join();
}

}  // namespace
}  // namespace magpie
