// time_limits_test.cc: what all waits with a time limit promise: try_..._for, try_..._until,
// wait_for, wait_until.
#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <magpie/process.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <ratio>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/step_clock.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using support::eventually;
using support::PlainThread;
using support::StepClock;

// One operation that waits until it is granted. Each grant lets one call through.
struct Limited {
  const char* name;
  std::function<bool(nanoseconds)> call_for;
  std::function<bool(system_clock::time_point)> call_until;
  std::function<bool(StepClock::time_point)> call_until_step;
  std::function<void()> grant;
  std::function<void()> undo = [] {};  // after a call that was granted: the next has to wait
};

template <class For, class Until>
Limited limited(
    const char* name, For call_for, Until call_until, std::function<void()> grant,
    std::function<void()> undo = [] {}) {
  return {name, call_for, call_until, call_until, std::move(grant), std::move(undo)};
}

Limited mutex_lock() {
  auto mutex = std::make_shared<Mutex>();
  mutex->lock();
  return limited(
      "Mutex::try_lock", [=](nanoseconds d) { return mutex->try_lock_for(d); },
      [=](auto t) { return mutex->try_lock_until(t); }, [=] { mutex->unlock(); });
}
Limited write_behind_writer() {
  auto mutex = std::make_shared<RWMutex>();
  mutex->lock();
  return limited(
      "RWMutex::try_lock", [=](nanoseconds d) { return mutex->try_lock_for(d); },
      [=](auto t) { return mutex->try_lock_until(t); }, [=] { mutex->unlock(); });
}
Limited write_behind_reader() {
  auto mutex = std::make_shared<RWMutex>();
  mutex->lock_shared();
  return limited(
      "RWMutex::try_lock behind a reader", [=](nanoseconds d) { return mutex->try_lock_for(d); },
      [=](auto t) { return mutex->try_lock_until(t); }, [=] { mutex->unlock_shared(); },
      [=] {
        mutex->unlock();
        mutex->lock_shared();
      });
}
Limited read_behind_writer() {
  auto mutex = std::make_shared<RWMutex>();
  mutex->lock();
  return limited(
      "RWMutex::try_lock_shared", [=](nanoseconds d) { return mutex->try_lock_shared_for(d); },
      [=](auto t) { return mutex->try_lock_shared_until(t); }, [=] { mutex->unlock(); },
      [=] {
        mutex->unlock_shared();
        mutex->lock();
      });
}
Limited semaphore_acquire() {
  auto semaphore = std::make_shared<Semaphore>(0);
  return limited(
      "Semaphore::try_acquire", [=](nanoseconds d) { return semaphore->try_acquire_for(d); },
      [=](auto t) { return semaphore->try_acquire_until(t); }, [=] { semaphore->release(); });
}
Limited wait_group_wait() {
  auto group = std::make_shared<WaitGroup>();
  group->add(1);
  return limited(
      "WaitGroup::wait", [=](nanoseconds d) { return group->wait_for(d); },
      [=](auto t) { return group->wait_until(t); }, [=] { group->done(); }, [=] { group->add(1); });
}
Limited chan_send() {
  Chan<std::unique_ptr<int>> full(1);
  full.send(nullptr);
  return limited(
      "Chan::try_send", [=](nanoseconds d) { return full.try_send_for(d, nullptr); },
      [=](auto t) { return full.try_send_until(t, nullptr); }, [=] { (void)full.recv(); });
}
Limited chan_recv() {
  Chan<std::string> empty(1);
  return limited(
      "Chan::try_recv", [=](nanoseconds d) { return empty.try_recv_for(d).has_value(); },
      [=](auto t) { return empty.try_recv_until(t).has_value(); }, [=] { empty.send("x"); });
}
Limited void_chan_send() {
  Chan<void> full(1);
  full.send();
  return limited(
      "Chan<void>::try_send", [=](nanoseconds d) { return full.try_send_for(d); },
      [=](auto t) { return full.try_send_until(t); }, [=] { (void)full.recv(); });
}
Limited void_chan_recv() {
  Chan<void> empty(1);
  return limited(
      "Chan<void>::try_recv", [=](nanoseconds d) { return empty.try_recv_for(d); },
      [=](auto t) { return empty.try_recv_until(t); }, [=] { empty.send(); });
}
Limited select_recv() {
  Chan<int> empty(1);
  return limited(
      "select with a time",
      [=](nanoseconds d) { return select(on_recv(empty), on_timeout(d)) == 0; },
      [=](auto t) {
        std::size_t chosen;
        do {
          chosen = select(on_recv(empty), on_deadline(t));
        } while (chosen == 1 && decltype(t)::clock::now() < t);
        return chosen == 0;
      },
      [=] { empty.send(1); });
}
Limited selector_recv() {
  Chan<int> empty(1);
  return limited(
      "Selector with a time",
      [=](nanoseconds d) {
        Selector selector;
        selector.recv(empty);
        selector.timeout(d);
        return selector.select() == 0;
      },
      [=](auto t) {
        Selector selector;
        selector.recv(empty);
        selector.deadline(t);
        std::size_t chosen;
        do {
          chosen = selector.select();
        } while (chosen == 1 && decltype(t)::clock::now() < t);
        return chosen == 0;
      },
      [=] { empty.send(1); });
}
Limited join() {
  struct Child {
    Chan<void> end{1};
    JoinHandle<int> handle;
    ~Child() { end.close(); }
    void start() {
      handle = spawn([end = end] { return end.recv() ? 7 : 0; });
    }
  };
  auto child = std::make_shared<Child>();
  child->start();
  auto right = [](std::optional<int> result) {
    EXPECT_EQ(result.value_or(7), 7);
    return result.has_value();
  };
  return limited(
      "JoinHandle::try_join", [=](nanoseconds d) { return right(child->handle.try_join_for(d)); },
      [=](auto t) { return right(child->handle.try_join_until(t)); }, [=] { child->end.send(); },
      [=] { child->start(); });
}
Limited group_go() {
  struct Group {
    Chan<void> end;  // outlives the goroutines that use it
    TaskGroup group;
    Group() {
      group.set_limit(1);
      group.go([this] { end.recv(); });
    }
    ~Group() { end.close(); }
  };
  auto group = std::make_shared<Group>();
  auto task = [its = group.get()] { its->end.recv(); };
  return limited(
      "TaskGroup::try_go", [=](nanoseconds d) { return group->group.try_go_for(d, task); },
      [=](auto t) { return group->group.try_go_until(t, task); }, [=] { group->end.send(); });
}
Limited group_wait() {
  struct Group {
    Chan<void> end;  // outlives the goroutines that use it
    TaskGroup group;
    void start() {
      group.go([this] { end.recv(); });
    }
    ~Group() { end.close(); }
  };
  auto group = std::make_shared<Group>();
  group->start();
  return limited(
      "TaskGroup::wait", [=](nanoseconds d) { return group->group.wait_for(d); },
      [=](auto t) { return group->group.wait_until(t); }, [=] { group->end.send(); },
      [=] { group->start(); });
}
Limited pool_submit() {
  struct Pool {
    Chan<void> end;
    WorkerPool pool{1};
    Pool() {
      pool.submit([this] { end.recv(); });
    }
    ~Pool() { end.close(); }
  };
  auto pool = std::make_shared<Pool>();
  auto job = [its = pool.get()] { its->end.recv(); };
  return limited(
      "WorkerPool::try_submit", [=](nanoseconds d) { return pool->pool.try_submit_for(d, job); },
      [=](auto t) { return pool->pool.try_submit_until(t, job); }, [=] { pool->end.send(); });
}

std::vector<Limited> all_limited() {
  std::vector<Limited> all = {mutex_lock(),
                              write_behind_writer(),
                              write_behind_reader(),
                              read_behind_writer(),
                              semaphore_acquire(),
                              wait_group_wait(),
                              chan_send(),
                              chan_recv(),
                              void_chan_send(),
                              void_chan_recv(),
                              select_recv(),
                              selector_recv(),
                              join(),
                              group_go(),
                              group_wait(),
                              pool_submit()};
  return all;
}

RT_TEST(TimeLimits, ACallThatNeedNotWaitSucceedsAlsoWithoutAnyTime) {
  for (const Limited& operation : all_limited()) {
    operation.grant();
    EXPECT_TRUE(eventually([&] { return operation.call_for(-1s); })) << operation.name;
    operation.undo();
  }
}

RT_TEST(TimeLimits, ACallGivesUpWhenItsTimeIsOverAndNothingIsLost) {
  for (const Limited& operation : all_limited()) {
    auto begun = steady_clock::now();
    EXPECT_FALSE(operation.call_for(2ms)) << operation.name;
    EXPECT_GE(steady_clock::now() - begun, 2ms) << operation.name;
    EXPECT_FALSE(operation.call_for(0ns)) << operation.name;
    operation.grant();
    EXPECT_TRUE(operation.call_for(support::kGenerousLimit)) << operation.name;
    operation.undo();
  }
}

RT_TEST(TimeLimits, ACallThatIsGrantedWhileItWaitsSucceeds) {
  for (const Limited& operation : all_limited()) {
    std::size_t waiting = stats().waiting;
    auto waiter = spawn([&] { return operation.call_for(support::kGenerousLimit); });
    ASSERT_TRUE(eventually([&] { return stats().waiting > waiting; })) << operation.name;
    operation.grant();
    EXPECT_TRUE(waiter.join()) << operation.name;
    operation.undo();
  }
}

RT_TEST(TimeLimits, PlainThreadsHaveThemToo) {
  for (const Limited& operation : all_limited()) {
    PlainThread thread([&] {
      EXPECT_FALSE(operation.call_for(2ms)) << operation.name;
      EXPECT_FALSE(operation.call_until(system_clock::now() + 2ms)) << operation.name;
      operation.grant();
      EXPECT_TRUE(operation.call_for(support::kGenerousLimit)) << operation.name;
    });
    thread.join();
    operation.undo();
  }
}

RT_TEST(TimeLimits, TheSystemClockMaySayHowLong) {
  for (const Limited& operation : all_limited()) {
    auto until = system_clock::now() + 2ms;
    EXPECT_FALSE(operation.call_until(until)) << operation.name;
    EXPECT_GE(system_clock::now(), until) << operation.name;
    EXPECT_FALSE(operation.call_until(system_clock::time_point::min())) << operation.name;
    operation.grant();
    EXPECT_TRUE(operation.call_until(system_clock::time_point::max())) << operation.name;
    operation.undo();
  }
}

RT_TEST(TimeLimits, AClockThatWasSetBackIsWaitedForAgain) {
  for (const Limited& operation : all_limited()) {
    auto until = StepClock::now() + 5ms;
    EXPECT_FALSE(operation.call_until_step(until)) << operation.name;
    EXPECT_GE(StepClock::now(), until) << operation.name;
  }
}

}  // namespace
}  // namespace magpie
