// blocking_test.cc: a goroutine that blocks its thread does not keep others from running, declared
// or not.

#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/let_signals_in.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::eventually;

// A pipe that a goroutine reads from with the bare system call.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(ends_.data()), 0); }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void block_until_written() {
    char byte;
    EXPECT_EQ(::read(ends_[0], &byte, 1), 1);
  }
  void write_one() { EXPECT_EQ(::write(ends_[1], "x", 1), 1); }

 private:
  std::array<int, 2> ends_{};
};

RT_TEST(Blocking, ReturnsWhatTheFunctionReturns) {
  EXPECT_EQ(blocking([] { return 7; }), 7);
  int value = 0;
  int& same = blocking([&]() -> int& { return value; });
  EXPECT_EQ(&same, &value);
  blocking([&] { value = 3; });
  EXPECT_EQ(value, 3);
  EXPECT_EQ(*blocking([] { return std::make_unique<int>(5); }), 5);
}

RT_TEST(Blocking, LetsExceptionsThrough) {
  EXPECT_THROW(blocking([] { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(blocking([] { return 1; }), 1);
}

TEST(Blocking, OnAPlainThreadItJustCalls) {
  EXPECT_EQ(blocking([] { return 2; }), 2);
}

RT_TEST(Blocking, OthersGoOnMeanwhile) {
  Pipe gate;
  WaitGroup group;
  std::atomic<int> through{0};
  // As many as block every P; only one that runs beside them lets them go.
  const int blocked = 2 * procs();
  for (int i = 0; i < blocked; ++i) {
    group.go([&] {
      blocking([&] { gate.block_until_written(); });
      ++through;
    });
  }
  for (int i = 0; i < blocked; ++i) group.go([&] { gate.write_one(); });
  group.wait();
  EXPECT_EQ(through.load(), blocked);
}

RT_TEST(Blocking, UndeclaredItWorksToo) {
  Pipe gate;
  WaitGroup group;
  const int blocked = 2 * procs();
  for (int i = 0; i < blocked; ++i) group.go([&] { gate.block_until_written(); });
  for (int i = 0; i < blocked; ++i) group.go([&] { gate.write_one(); });
  group.wait();
}

RT_TEST(Blocking, AStdMutexAndItsConditionMayBeUsedBetweenGoroutines) {
  std::mutex mutex;
  std::condition_variable changed;
  int turn = 0;
  WaitGroup group;
  constexpr int kPlayers = 4, kRounds = 5;
  for (int i = 0; i < kPlayers; ++i) {
    group.go([&, i] {
      for (int k = 0; k < kRounds; ++k) {
        std::unique_lock hold(mutex);
        changed.wait(hold, [&] { return turn % kPlayers == i; });
        ++turn;
        changed.notify_all();
      }
    });
  }
  group.wait();
  EXPECT_EQ(turn, kPlayers * kRounds);
}

RT_TEST(Blocking, TheRuntimeMayBeUsedInside) {
  Chan<int> values;
  WaitGroup group;
  for (int i = 0; i < 10; ++i) {
    group.go([&, i] {
      blocking([&] {
        usleep(100);
        values.send(i);
        usleep(100);
      });
    });
  }
  int sum = 0;
  for (int i = 0; i < 10; ++i) sum += *values.recv();
  group.wait();
  EXPECT_EQ(sum, 45);
}

RT_TEST(Blocking, Nests) {
  EXPECT_EQ(blocking([] { return blocking([] { return 4; }) + 1; }), 5);
  WaitGroup group;
  for (int i = 0; i < 8; ++i) {
    group.go([] {
      blocking([] {
        usleep(200);
        blocking([] { usleep(200); });
        usleep(200);
      });
      yield();
    });
  }
  group.wait();
}

RT_TEST(Blocking, ManyTimesByMany) {
  std::atomic<int> calls{0};
  WaitGroup group;
  for (int i = 0; i < 20; ++i) {
    group.go([&] {
      for (int k = 0; k < 20; ++k) {
        blocking([] { usleep(50); });
        ++calls;
        if (k % 5 == 0) yield();
      }
    });
  }
  group.wait();
  EXPECT_EQ(calls.load(), 400);
}

// Long ones first, so that Ps are handed over at once; then short ones, which say that this was
// wrong.
RT_TEST(Blocking, LongAndShortCallsMayBeMixed) {
  std::atomic<int> calls{0};
  for (const int microseconds : {300, 0, 300, 1}) {
    WaitGroup group;
    for (int i = 0; i < 20; ++i) {
      group.go([&, microseconds] {
        for (int k = 0; k < 10; ++k) {
          blocking([=] {
            if (microseconds != 0) usleep(static_cast<useconds_t>(microseconds));
          });
          ++calls;
          if (k % 2 == 0) yield();
        }
      });
    }
    group.wait();
  }
  EXPECT_EQ(calls.load(), 4 * 20 * 10);
}

// All calls that are made while others wait hand their P over; the threads without one that compute
// instead are stopped.
TEST(Blocking, WhoHandedItsPOverAndThenComputesTakesTurnsLikeOthers) {
  run(Options{.procs = 1, .time_slice = 1ms}, [] {
    std::atomic<bool> stop{false};
    std::atomic<int> computing{0};
    WaitGroup group;
    constexpr int kCalls = 12;
    for (int i = 0; i < kCalls; ++i) {
      group.go([&] {
        blocking([] { usleep(1000); });
        ++computing;
        while (!stop.load(std::memory_order_relaxed)) usleep(0);
      });
    }
    EXPECT_TRUE(eventually([&] {
      sleep_for(1ms);
      return computing.load() == kCalls;
    }));
    EXPECT_GT(stats().total.handoffs, 3U);
    stop.store(true);
    group.wait();
  });
}

TEST(Blocking, IsNoDeadlock) {
  // Every P idle, every other goroutine asleep: but one thread is out there and will come back.
  run(Options{.procs = 2}, [] {
    Chan<int> done;
    go([&] {
      blocking([] { usleep(50'000); });
      done.send(1);
    });
    go([&] {
      usleep(50'000);
      done.send(2);
    });
    EXPECT_EQ(*done.recv() + *done.recv(), 3);
  });
}

// Nothing has happened for long, so nobody looks after the Ps any more; then somebody needs the one
// that is held.
TEST(Blocking, AfterALongQuietThePOfOneWhoBlocksIsTakenWhenItIsNeeded) {
  run(Options{.procs = 2, .preempt = false}, [] {
    Pipe gate;
    std::atomic<bool> second_ran{false};
    WaitGroup both;
    both.add(2);
    std::thread outsider([&] {
      std::this_thread::sleep_for(150ms);
      go([&] {  // holds the other P
        while (!second_ran.load(std::memory_order_relaxed)) {
        }
        both.done();
      });
      go([&] {
        second_ran.store(true);
        gate.write_one();
        both.done();
      });
    });
    gate.block_until_written();
    outsider.join();
    both.wait();
  });
}

TEST(Blocking, AfterALongQuietTimersFireBesideOneWhoBlocks) {
  run(Options{.procs = 2}, [] {
    Pipe gate;
    go([&] {
      sleep_for(150ms);
      gate.write_one();
    });
    gate.block_until_written();
  });
}

TEST(Blocking, ThreadsAreUsedAgain) {
  run(Options{.procs = 2}, [] {
    auto round = [] {
      WaitGroup group;
      for (int i = 0; i < 8; ++i) group.go([] { blocking([] { usleep(3000); }); });
      group.wait();
    };
    for (int i = 0; i < 20; ++i) round();
    EXPECT_LE(num_threads(),
              8 + 2 + 16);  // those that block, those that do not, and what is made ahead
  });
}

TEST(Blocking, ThreadsThatNobodyNeedsEndAfterAWhile) {
  run(Options{.procs = 2}, [] {
    constexpr int kCalls = 40;
    Pipe gate;
    WaitGroup group;
    for (int i = 0; i < kCalls; ++i) {
      group.go([&] { blocking([&] { gate.block_until_written(); }); });
    }
    EXPECT_TRUE(eventually([] {
      sleep_for(1ms);
      return num_threads() >= kCalls;
    }));
    for (int i = 0; i < kCalls; ++i) gate.write_one();
    group.wait();
    EXPECT_TRUE(eventually([] {
      sleep_for(50ms);
      return num_threads() <= kCalls / 4;
    }));
    // And those that are left, and new ones, do as well.
    for (int i = 0; i < kCalls; ++i)
      group.go([&] { blocking([&] { gate.block_until_written(); }); });
    for (int i = 0; i < kCalls; ++i) group.go([&] { gate.write_one(); });
    group.wait();
  });
}

// Their goroutines compute for less than it takes to be found to compute, and then sleep; loops
// want their Ps all the time.
TEST(Blocking, UndeclaredCallsAreNotInterrupted) {
  run(Options{.procs = 2}, [] {
    std::atomic<bool> stop{false};
    std::atomic<int> calls{0}, interrupted{0};
    auto compute = [](std::chrono::microseconds time) {
      const auto until = std::chrono::steady_clock::now() + time;
      while (std::chrono::steady_clock::now() < until) support::let_signals_in();
    };
    WaitGroup all;
    for (int i = 0; i < 6; ++i) {
      all.go([&, i] {
        while (!stop) {
          compute(std::chrono::microseconds(400 + 100 * i));
          if (poll(nullptr, 0, 2) < 0 && errno == EINTR) ++interrupted;
          ++calls;
        }
      });
    }
    for (int i = 0; i < 3; ++i) {
      all.go([&] {
        while (!stop) {
          compute(3ms);
          yield();
        }
      });
    }
    EXPECT_TRUE(eventually([&] {
      sleep_for(1ms);
      return calls.load() > 500;
    }));
    stop = true;
    all.wait();
    EXPECT_EQ(interrupted.load(), 0);
  });
}

int count_threads() {
  std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

// The one that has the lock is stopped each time that its slice is over. If it had to wait for its
// turn then, those that want the lock would meanwhile take the P one after the other, and block a
// thread each.
TEST(Blocking, AStoppedGoroutineThatHoldsALockGoesBeforeThoseThatWantIt) {
  int most_threads = 0;
  run(Options{.procs = 1}, [&] {
    std::mutex lock;
    std::atomic<bool> is_held{false};
    WaitGroup all;
    all.go([&] {
      std::scoped_lock hold(lock);
      is_held = true;
      const auto until = support::cpu_time_of_this_thread() + 100ms;
      while (support::cpu_time_of_this_thread() < until) continue;
    });
    while (!is_held) yield();
    for (int i = 0; i < 1000; ++i) {
      all.go([&, i] {
        std::scoped_lock hold(lock);
        if (i % 50 == 0) most_threads = std::max(most_threads, count_threads());
      });
    }
    all.wait();
  });
  EXPECT_LT(most_threads, 100);
}

}  // namespace
}  // namespace magpie
