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

namespace magpie {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using support::eventually;
using support::PlainThread;

// A clock that anybody can set: a millisecond passes with each look at it.
struct StepClock {
  using duration = std::chrono::milliseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<StepClock>;
  static constexpr bool is_steady = false;
  static inline std::atomic<rep> looks{0};
  static time_point now() { return time_point(duration(looks.fetch_add(1))); }
};

static_assert(std::chrono::is_clock_v<StepClock> && !StepClock::is_steady);

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

// ---- what is special to some

RT_TEST(TimeLimits, TheStandardsTimedLocksWorkWithAnRWMutex) {
  RWMutex mutex;
  std::unique_lock writer(mutex, 1ms);
  EXPECT_TRUE(writer.owns_lock());
  EXPECT_FALSE(std::shared_lock(mutex, 1ms).owns_lock());
  EXPECT_FALSE(std::shared_lock(mutex, system_clock::now() + 1ms).owns_lock());
  writer.unlock();
  EXPECT_TRUE(std::shared_lock(mutex, 1ms).owns_lock());
}

RT_TEST(TimeLimits, AWriterThatGivesUpKeepsNoReadersOut) {
  RWMutex mutex;
  std::shared_lock reader(mutex);
  EXPECT_FALSE(mutex.try_lock_for(1ms));
  EXPECT_TRUE(mutex.try_lock_shared());
  mutex.unlock_shared();
}

RT_TEST(TimeLimits, AValueThatWasNotSentInTimeIsUntouched) {
  Chan<std::unique_ptr<int>> unbuffered;
  auto value = std::make_unique<int>(7);
  EXPECT_FALSE(unbuffered.try_send_for(1ms, value));
  EXPECT_FALSE(unbuffered.try_send_until(steady_clock::now() + 1ms, std::move(value)));
  EXPECT_EQ(*value, 7);
  auto receiver = spawn([=] { return unbuffered.recv(); });
  EXPECT_TRUE(unbuffered.try_send_for(support::kGenerousLimit, value));
  EXPECT_EQ(value, nullptr);
  EXPECT_EQ(**receiver.join(), 7);
}

RT_TEST(TimeLimits, AClosedChannelEndsThemAtOnce) {
  Chan<int> closed;
  auto closer = spawn([=] { closed.close(); });
  EXPECT_EQ(closed.try_recv_for(support::kGenerousLimit), std::nullopt);
  EXPECT_THROW((void)closed.try_send_for(support::kGenerousLimit, 1), ClosedChannel);
  closer.join();
}

RT_TEST(TimeLimits, TheNilChannelWaitsAsLongAsItMay) {
  auto begun = steady_clock::now();
  EXPECT_EQ(Chan<int>::nil().try_recv_for(1ms), std::nullopt);
  EXPECT_FALSE(Chan<int>::nil().try_send_for(1ms, 1));
  EXPECT_GE(steady_clock::now() - begun, 2ms);
}

RT_TEST(TimeLimits, TryJoinDoesNotWait) {
  Chan<void> end;
  JoinHandle<void> handle = spawn([=] { end.recv(); });
  EXPECT_FALSE(handle.try_join());
  EXPECT_TRUE(handle.joinable());
  end.send();
  EXPECT_TRUE(eventually([&] { return handle.try_join(); }));
  EXPECT_FALSE(handle.joinable());
  EXPECT_THROW((void)handle.try_join(), std::logic_error);
}

RT_TEST(TimeLimits, TryJoinReturnsReferencesAsPointersAndThrowsWhatTheGoroutineThrew) {
  int answer = 42;
  JoinHandle<int&> reference = spawn([&]() -> int& { return answer; });
  EXPECT_EQ(reference.try_join_for(support::kGenerousLimit), &answer);
  JoinHandle<int> failing = spawn([]() -> int { throw std::runtime_error("no"); });
  EXPECT_THROW((void)failing.try_join_for(support::kGenerousLimit), std::runtime_error);
}

RT_TEST(TimeLimits, ATaskGroupThatIsWaitedForInTimeThrowsItsFirstException) {
  TaskGroup group;
  group.go([] { throw std::runtime_error("no"); });
  EXPECT_THROW((void)group.wait_for(support::kGenerousLimit), std::runtime_error);
}

RT_TEST(TimeLimits, AWorkerPoolIsClosedAlsoIfItIsNotDoneInTime) {
  WorkerPool pool(1);
  Chan<void> end;
  pool.submit([=] { end.recv(); });
  EXPECT_FALSE(pool.wait_for(1ms));
  EXPECT_THROW(pool.submit([] {}), ClosedChannel);
  end.send();
  EXPECT_TRUE(pool.wait_until(system_clock::now() + support::kGenerousLimit));
}

RT_TEST(TimeLimits, ARateLimiterTakesNothingIfTheTokensComeTooLate) {
  RateLimiter limiter(0.001, 2);
  EXPECT_TRUE(limiter.wait_for(0ns));
  EXPECT_TRUE(limiter.wait_until(system_clock::now()));
  EXPECT_FALSE(limiter.wait_for(1s));
  EXPECT_FALSE(limiter.wait_until(steady_clock::now() + 1s));
}

RT_TEST(TimeLimits, AWaitOnACondVarMayHaveATimeLimitAndAStopToken) {
  Mutex mutex;
  CondVar changed;
  std::stop_source source;
  std::unique_lock hold(mutex);
  auto never = [] { return false; };
  EXPECT_FALSE(changed.wait_for(hold, source.get_token(), 1ms, never));
  EXPECT_FALSE(changed.wait_until(hold, source.get_token(), system_clock::now() + 1ms, never));
  EXPECT_TRUE(hold.owns_lock());
  std::size_t waiting = stats().waiting;
  auto stopper = spawn([&] {
    EXPECT_TRUE(eventually([&] { return stats().waiting > waiting; }));
    source.request_stop();
  });
  EXPECT_FALSE(changed.wait_for(hold, source.get_token(), support::kGenerousLimit, never));
  stopper.join();
}

RT_TEST(TimeLimits, AWaitOnACondVarTakesAnyClock) {
  Mutex mutex;
  CondVar changed;
  std::unique_lock hold(mutex);
  EXPECT_EQ(changed.wait_until(hold, system_clock::now() + 1ms), std::cv_status::timeout);
  EXPECT_FALSE(changed.wait_until(hold, system_clock::now() + 1ms, [] { return false; }));
  auto until = StepClock::now() + 5ms;
  EXPECT_FALSE(changed.wait_until(hold, until, [] { return false; }));
  EXPECT_GE(StepClock::now(), until);
}

RT_TEST(TimeLimits, SleepAndContextsTakeAnyClock) {
  auto until = system_clock::now() + 2ms;
  sleep_until(until);
  EXPECT_GE(system_clock::now(), until);
  auto step = StepClock::now() + 5ms;
  sleep_until(step);
  EXPECT_GE(StepClock::now(), step);
  step = StepClock::now() + 5ms;
  std::error_code error;
  EXPECT_TRUE(sleep_until(step, Context::background(), error));
  EXPECT_GE(StepClock::now(), step);
  sleep_until(system_clock::time_point::min());

  Context context = Context::background().with_deadline(system_clock::now() + 2ms);
  context.done().recv();
  EXPECT_EQ(context.err(), std::errc::timed_out);
  EXPECT_FALSE(sleep_until(system_clock::time_point::max(), context, error));
}

RT_TEST(TimeLimits, AProcessIsWaitedForByAnyClock) {
  Process child = Process::spawn({"sleep", "60"});
  EXPECT_EQ(child.wait_until(system_clock::now() + 2ms), std::nullopt);
  std::error_code error;
  EXPECT_EQ(child.wait_until(system_clock::now() + 2ms, error), std::nullopt);
  EXPECT_FALSE(error);
  child.kill();
  EXPECT_TRUE(child.wait_until(system_clock::now() + support::kGenerousLimit).has_value());
}

TEST(TimeLimitsOutside, TimePointsThatAreTooFarAwayToCountNeverCome) {
  using Hours = std::chrono::time_point<system_clock, std::chrono::hours>;
  EXPECT_EQ(detail::deadline_at(Hours::max()), detail::kNoDeadline);
  EXPECT_LE(detail::deadline_at(Hours::min()), detail::steady_now_ns());
  EXPECT_EQ(detail::deadline_at(steady_clock::time_point::max()), detail::kNoDeadline);
  EXPECT_EQ(detail::steady_time(detail::kNoDeadline), steady_clock::time_point::max());
  auto file_time = std::chrono::file_clock::now() + 1h;
  EXPECT_GT(detail::deadline_at(file_time), detail::steady_now_ns());
  EXPECT_EQ(detail::deadline_at(std::chrono::file_clock::time_point::max()), detail::kNoDeadline);
}

// The clock counts nanoseconds, in which the year 1601 would lie far in the future.
RT_TEST(TimeLimits, ATimeBeforeTheFirstThatTheClockCanCountHasPassed) {
  const std::chrono::sys_days long_ago = std::chrono::year(1601) / 1 / 1;
  Chan<int> empty;
  EXPECT_EQ(empty.try_recv_until(long_ago), std::nullopt);
  sleep_until(long_ago);
  Mutex mutex;
  std::unique_lock hold(mutex);
  EXPECT_FALSE(mutex.try_lock_until(long_ago));
  CondVar changed;
  EXPECT_EQ(changed.wait_until(hold, long_ago), std::cv_status::timeout);
  EXPECT_FALSE(changed.wait_until(hold, long_ago, [] { return false; }));
  EXPECT_FALSE(changed.wait_until(hold, std::stop_token(), long_ago, [] { return false; }));
}

TEST(TimeLimitsOutside, DurationsInOddUnitsAreConvertedWithoutOverflow) {
  using Samples = std::chrono::duration<std::int64_t, std::ratio<1, 44'100>>;
  constexpr std::chrono::nanoseconds kLong = 24h * 300;
  std::int64_t long_ns = detail::whole_ns(Samples(std::chrono::seconds(24h * 300)));
  EXPECT_GE(long_ns, kLong.count());
  EXPECT_LE(long_ns, (kLong + 1us).count());

  constexpr std::int64_t kPrime = 1'000'000'007;
  using Ticks = std::chrono::duration<std::int64_t, std::ratio<1, kPrime>>;
  std::int64_t short_ns = detail::whole_ns(Ticks(13 * kPrime));
  EXPECT_GE(short_ns, nanoseconds(13s).count());
  EXPECT_LE(short_ns, nanoseconds(13s + 1us).count());
  EXPECT_EQ(detail::whole_ns(Ticks(kPrime)), nanoseconds(1s).count());

  using Thirds = std::chrono::duration<std::int64_t, std::ratio<1, 3>>;
  EXPECT_EQ(detail::whole_ns(Thirds::max()), detail::kNoDeadline);
}

TEST(TimeLimitsOutside, AChannelIsMadeWithTheLiteralZero) {
  Chan<int> c(0);
  EXPECT_EQ(c.capacity(), 0u);
  Chan<void> signal(0);
  EXPECT_EQ(signal.capacity(), 0u);
}

TEST(TimeLimitsOutside, ThePolicyThatExitsIsCalledSo) {
  EXPECT_EQ(Options{}.on_deadlock, DeadlockPolicy::exit);
  EXPECT_EQ(DeadlockPolicy::abort, DeadlockPolicy::exit);  // what the API calls it
  EXPECT_NE(DeadlockPolicy::report, DeadlockPolicy::exit);
}

}  // namespace
}  // namespace magpie
