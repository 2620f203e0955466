// limits_test.cc: no more threads, because the program set a limit or the system refuses them: what
// needs one waits, is said once, and everything finishes.

#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/at_procs.h"
#include "support/captured_stderr.h"
#include "support/let_signals_in.h"
#include "support/os_faults.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::cpu_time_of_this_thread;
using support::eventually;
using support::let_signals_in;
using support::spin_until;
using support::ThreadFaults;

class Limits : public support::AtProcs {};
INSTANTIATE_TEST_SUITE_P(AtProcs, Limits, support::kFewProcs, testing::PrintToStringParamName());

std::string what_is_said_in(auto&& body) {
  support::CapturedStderr captured;
  body();
  return captured.end();
}

void expect_said_once(const std::string& said, const std::string& part) {
  EXPECT_NE(said.find(part), std::string::npos) << said;
  EXPECT_EQ(said.find(part), said.rfind(part)) << said;
}

void yield_in_many() {
  constexpr int kGoroutines = 500;
  std::atomic<int> done{0};
  WaitGroup all;
  for (int i = 0; i < kGoroutines; ++i) {
    all.go([&] {
      yield();
      ++done;
    });
  }
  all.wait();
  EXPECT_EQ(done.load(), kGoroutines);
}

// What is written to stderr while it lives, also for somebody who waits for it.
class StderrPipe {
 public:
  StderrPipe() {
    std::fflush(stderr);
    EXPECT_EQ(pipe(ends_.data()), 0);
    dup2(ends_[1], STDERR_FILENO);
    close(ends_[1]);
  }
  ~StderrPipe() {
    give_back();
    close(ends_[0]);
  }
  StderrPipe(const StderrPipe&) = delete;
  StderrPipe& operator=(const StderrPipe&) = delete;

  void read_until(const std::string& part) {
    while (said_.find(part) == std::string::npos && read_more()) {
    }
  }
  const std::string& all() {
    give_back();
    while (read_more()) {
    }
    return said_;
  }

 private:
  void give_back() { dup2(before_, STDERR_FILENO); }
  bool read_more() {
    std::array<char, 256> text;
    const ssize_t length = read(ends_[0], text.data(), text.size());
    if (length > 0) said_.append(text.data(), static_cast<std::size_t>(length));
    return length > 0;
  }

  const int before_ = dup(STDERR_FILENO);
  std::array<int, 2> ends_{};
  std::string said_;
};

// More at a time than there may be threads.
void block_in_many(int procs, bool declared) {
  const int many = 4 * procs;
  std::atomic<int> done{0};
  WaitGroup all;
  for (int i = 0; i < many; ++i) {
    all.go([&] {
      if (declared) {
        blocking([] { usleep(2000); });
      } else {
        usleep(2000);
      }
      ++done;
    });
  }
  all.wait();
  EXPECT_EQ(done.load(), many);
}

TEST_P(Limits, WithOneThreadForEachPBlockingCallsFinishLater) {
  run(Options{.procs = procs(), .max_threads = procs()}, [this] {
    block_in_many(procs(), true);
    block_in_many(procs(), false);
    EXPECT_LE(num_threads(), procs());
  });
}

// They hold every P, and others wait, until it is said that there are no more threads.
TEST_P(Limits, ThatHandOversWaitForThreadsIsSaidOnce) {
  const std::string limit = "Options::max_threads";
  StderrPipe said;
  std::atomic<bool> heard{false};
  std::thread listener([&] {
    said.read_until(limit);
    heard = true;
  });
  run(Options{.procs = procs(), .max_threads = procs()}, [&] {
    WaitGroup all;
    for (int i = 0; i < 2 * procs(); ++i) {
      all.go([&] {
        blocking([&] {
          while (!heard) usleep(100);
        });
      });
    }
    all.wait();
    block_in_many(procs(), true);
  });
  listener.join();
  expect_said_once(said.all(), limit);
}

TEST_P(Limits, WithFewerThreadsThanPsEverythingFinishes) {
  const std::string said = what_is_said_in([this] {
    for (const int limit : {1, 2}) {
      run(Options{.procs = 2 * procs() + 1, .max_threads = limit}, [=] {
        yield_in_many();
        EXPECT_LE(num_threads(), limit);
      });
    }
  });
  EXPECT_NE(said.find("Options::max_threads"), std::string::npos) << said;
}

TEST_P(Limits, WithEveryThreadButSysmonRefusedEverythingFinishesAndItIsSaidOnce) {
  ThreadFaults refuse_all_but_sysmon(0, 1);
  const std::string said = what_is_said_in([this] {
    run(Options{.procs = procs() + 1}, [this] {
      yield_in_many();
      block_in_many(procs(), true);
    });
  });
  EXPECT_GT(ThreadFaults::requests(), 1);
  expect_said_once(said, "no new thread for an idle processor");
}

TEST_P(Limits, WithThreadsRefusedNowAndThenEverythingFinishes) {
  for (int round = 0; round < 5; ++round) {
    ThreadFaults refuse_two_of_three(3, 1);
    what_is_said_in([this] {
      run(Options{.procs = procs()}, [this] {
        yield_in_many();
        block_in_many(procs(), true);
      });
    });
  }
}

TEST_P(Limits, WithThreadsRefusedWhileProcsChangeNothingIsLost) {
  ThreadFaults refuse_half(2, 1);
  what_is_said_in([this] {
    run(Options{.procs = procs()}, [] {
      WaitGroup all;
      for (int i = 0; i < 500; ++i) all.go([] { yield(); });
      for (const int n : {1, 8, 2, 6, 3}) {
        set_procs(n);
        yield();
      }
      all.wait();
    });
  });
}

TEST_P(Limits, BeyondTheLimitOnStoppedOnesThoseTakeTurns) {
  constexpr int kMostStopped = 3;
  run(Options{.procs = procs(), .max_preempted = kMostStopped}, [this] {
    std::atomic<bool> stop{false};
    // Those that run and those that are stopped; one more might never begin.
    std::vector<std::atomic<long>> turns(static_cast<std::size_t>(procs() + kMostStopped));
    WaitGroup loops;
    for (auto& mine : turns) {
      loops.go([&] {
        while (!stop.load(std::memory_order_relaxed)) {
          mine.fetch_add(1, std::memory_order_relaxed);
          let_signals_in();
        }
      });
    }
    // Each of them goes on again and again, and so does a goroutine that a timer wakes.
    for (int round = 0; round < 3; ++round) {
      const std::vector<long> before(turns.begin(), turns.end());
      EXPECT_TRUE(eventually([&] {
        sleep_for(20ms);
        return std::ranges::none_of(turns, [&](auto& mine) {
          return mine == before[static_cast<std::size_t>(&mine - turns.data())];
        });
      }));
    }
    EXPECT_GT(stats().total.preemptions, 0U);
    stop.store(true);
    loops.wait();
  });
}

TEST_P(Limits, ManyThatComputeForLongTakeNoMoreThreadsThanMayBeStopped) {
  constexpr int kMostStopped = 8, kLoops = 160;
  run(Options{.procs = procs(), .time_slice = 1ms, .max_preempted = kMostStopped}, [&] {
    std::atomic<int> done{0};
    WaitGroup all;
    int most_threads = 0;
    for (int i = 0; i < kLoops; ++i) {
      all.go([&] {
        const auto begin = cpu_time_of_this_thread();
        while (cpu_time_of_this_thread() - begin < 5ms) let_signals_in();
        ++done;
      });
    }
    EXPECT_TRUE(eventually([&] {
      sleep_for(1ms);
      most_threads = std::max(most_threads, num_threads());
      return done.load() == kLoops;
    }));
    all.wait();
    EXPECT_GT(stats().total.preemptions, static_cast<std::uint64_t>(kMostStopped));
    // Besides those that are stopped: one for each P, one for each that was begun or stopped at the
    // same moment, and some that sleep: made ahead, or kept.
    EXPECT_LE(most_threads, kMostStopped + 4 * procs() + 12);
  });
}

// One is stopped while it holds a lock; the next waits for the lock, on the last thread there may
// be. The first has to get the P, although no thread is free that could take it over: it brings its
// own.
TEST_P(Limits, AtTheLimitOfThreadsAStoppedHolderOfALockGoesOn) {
  run(Options{.procs = procs(), .max_threads = procs() + 1, .time_slice = 1ms}, [this] {
    std::mutex lock;
    std::atomic<bool> wanted = false, over = false;
    WaitGroup both, others;
    for (int i = 1; i < procs(); ++i) others.go([&] { spin_until(over); });
    both.go([&] {
      std::lock_guard hold(lock);
      spin_until(wanted);
    });
    both.go([&] {
      while (lock.try_lock()) {  // the other one comes first
        lock.unlock();
        yield();
      }
      both.go([] {});  // waits too, and nobody can run it
      wanted = true;
      lock.lock();
      lock.unlock();
    });
    both.wait();
    over = true;
    others.wait();
  });
}

}  // namespace
}  // namespace magpie
