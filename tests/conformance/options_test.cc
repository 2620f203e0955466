// options_test.cc: what the fields of Options promise.
#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "support/let_signals_in.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

int cpus_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  return CPU_COUNT(&set);
}

// Starts goroutines until `enough` of them have run, or `most` were started; returns how many had
// run.
long started_without_pause(long enough, long most) {
  std::atomic<long> ran{0};
  WaitGroup all;
  for (long i = 0; i < most && ran.load() < enough; ++i) all.go([&ran] { ++ran; });
  long seen = ran.load();
  all.wait();
  return seen;
}

// Whether cond() becomes true, asked again and again without a yield.
template <class Condition>
bool eventually_without_waiting(Condition cond) {
  const auto enough = support::cpu_time_of_this_thread() + std::chrono::seconds(20);
  while (!cond())
    if (support::cpu_time_of_this_thread() > enough) return false;
  return true;
}

TEST(Options, ASpawnerGivesWayToThoseItStartedWhenItsTimeSliceIsOver) {
  run(Options{.procs = 1, .time_slice = std::chrono::microseconds(100)},
      [] { EXPECT_GE(started_without_pause(1, 50'000'000), 1); });
}

TEST(Options, WithoutPreemptASpawnerIsNotInterrupted) {
  run(Options{.procs = 1, .time_slice = std::chrono::microseconds(1), .preempt = false},
      [] { EXPECT_EQ(started_without_pause(1, 20'000), 0); });
}

// Calls the runtime again and again without waiting there, until the goroutine that it started has
// run.
bool gives_way_at_last() {
  std::atomic<bool> other_ran{false};
  go([&other_ran] { other_ran = true; });
  Chan<int> never(0);
  return eventually_without_waiting([&] {
    EXPECT_FALSE(never.try_recv());
    return other_ran.load();
  });
}

// It is interrupted seldom, but does not keep others waiting for ever.
TEST(Options, WithoutPreemptAGoroutineThatCallsTheRuntimeWithoutWaitingGivesWayAtLast) {
  run(Options{.procs = 1, .preempt = false}, [] { EXPECT_TRUE(gives_way_at_last()); });
}

TEST(Options, WithoutPreemptSuchAGoroutineGivesWayWithAThreadLockToo) {
  run(Options{.procs = 1, .preempt = false}, [] {
    ThreadLock lock;
    const auto thread = std::this_thread::get_id();
    EXPECT_TRUE(gives_way_at_last());
    EXPECT_EQ(std::this_thread::get_id(), thread);
  });
}

TEST(Options, WithoutPreemptTimersFireBesideALoopOfCallsThatDoNotWait) {
  run(Options{.procs = 1, .preempt = false}, [] {
    std::atomic<bool> fired{false};
    auto timer = after_func(std::chrono::milliseconds(1), [&fired] { fired = true; });
    Chan<int> self(1);
    EXPECT_TRUE(eventually_without_waiting([&] {
      EXPECT_TRUE(self.try_send(1));
      EXPECT_TRUE(self.try_recv());
      return fired.load();
    }));
  });
}

TEST(Options, AGoroutineThatOnlyJoinsInPlaceGivesWayToo) {
  run(Options{.procs = 1, .time_slice = std::chrono::microseconds(100)}, [] {
    std::atomic<bool> other_ran{false};
    go([&other_ran] { other_ran = true; });
    go([] {});  // takes the next slot, so that the one above waits in the ring
    for (long i = 0; i < 50'000'000 && !other_ran.load(); ++i) spawn([] {}).join();
    EXPECT_TRUE(other_ran.load());
  });
}

TEST(Options, WithoutPreemptAGoroutineThatOnlyJoinsInPlaceGivesWayAllTheSame) {
  run(Options{.procs = 1, .time_slice = std::chrono::microseconds(100), .preempt = false}, [] {
    std::atomic<bool> other_ran{false};
    go([&other_ran] { other_ran = true; });
    go([] {});  // takes the next slot, so that the one above waits in the ring
    for (long i = 0; i < 50'000'000 && !other_ran.load(); ++i) spawn([] {}).join();
    EXPECT_TRUE(other_ran.load());
  });
}

TEST(Options, PinBindsEachThreadToOneCpuAndGivesTheCallerItsOwnBack) {
  const int before = cpus_of_this_thread();
  run(Options{.procs = 2, .pin = true}, [] {
    WaitGroup all;
    for (int i = 0; i < 100; ++i) {
      all.go([] {
        yield();
        EXPECT_EQ(cpus_of_this_thread(), 1);
      });
    }
    all.wait();
  });
  EXPECT_EQ(cpus_of_this_thread(), before);
}

TEST(Options, ATimeSliceBelowAMicrosecondIsRefused) {
  EXPECT_THROW(run(Options{.time_slice = std::chrono::microseconds(0)}, [] {}),
               std::invalid_argument);
}

// A plain thread that is there hides a deadlock: it might wake somebody, and here it does.
TEST(Options, AnotherThreadOfTheProcessKeepsADeadlockFromBeingReported) {
  WaitGroup done;
  done.add(1);
  std::atomic<bool> waiting{false};
  std::thread waker([&] {
    while (!waiting.load()) std::this_thread::yield();
    EXPECT_TRUE(support::eventually([] { return stats().idle_procs == 2; }));
    done.done();
  });
  run(Options{.procs = 2}, [&] {
    waiting = true;
    done.wait();
  });
  waker.join();
}

// It may be gone before the last thread of the runtime, about to sleep, counts the threads of the
// process.
TEST(Options, ThreadsThatWokeSomebodyAndEndedLeaveNoDeadlockBehind) {
  for (int round = 0; round < 300; ++round) {
    WaitGroup done;
    done.add(3);
    std::thread wakers[3];
    run(Options{.procs = 8}, [&] {
      for (auto& waker : wakers) waker = std::thread([&done] { done.done(); });
      done.wait();
    });
    for (auto& waker : wakers) waker.join();
  }
}

TEST(Options, ATimeSliceMayBeAsLongAsTheTypeAllows) {
  run(Options{.procs = 1, .time_slice = std::chrono::microseconds::max()}, [] {
    std::atomic<bool> other_ran{false};
    go([&other_ran] { other_ran = true; });
    const auto begin = support::cpu_time_of_this_thread();
    while (support::cpu_time_of_this_thread() - begin < std::chrono::milliseconds(100))
      support::let_signals_in();
    EXPECT_FALSE(other_ran);
    EXPECT_TRUE(support::eventually([&] { return other_ran.load(); }));
  });
}

// ---- plain threads and the detection of deadlocks

// Threads come, wake a goroutine and end, so that now and then an M looks for a deadlock while one
// of them is about to be gone. A deadlock that there is not would end the program.
TEST(Deadlock, IsNotSeenInThreadsThatWakeAGoroutineAndEnd) {
  for (int procs : {1, 3}) {
    run(Options{.procs = procs}, [] {
      Chan<int> values;
      for (int i = 0; i < 300; ++i) {
        std::thread([values, i] { values.send(i); }).detach();
        EXPECT_EQ(values.recv(), i);
      }
    });
  }
}

// A reader that waits for goroutines would hide a deadlock without its promise; see
// tests/crash/deadlock_beside_bystander.cc. The promise is over with its object.
TEST(Deadlock, AThreadThatPromisesNothingAnyMoreMayWakeAGoroutine) {
  run(Options{.procs = 2}, [] {
    WaitGroup done;
    done.add(1);
    std::thread waker([&] {
      { Bystander nested, nested_again; }
      EXPECT_TRUE(support::eventually([] { return stats().idle_procs == 2; }));
      done.done();
    });
    done.wait();
    waker.join();
  });
}

}  // namespace
}  // namespace magpie
