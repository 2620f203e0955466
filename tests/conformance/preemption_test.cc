// preemption_test.cc: a goroutine that loops without ever calling the runtime does not keep others
// from running.

#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/os.h"
#include "base/sanitizer.h"
#include "sched/run/runtime.h"
#include "support/blocked_signals.h"
#include "support/let_signals_in.h"
#include "support/no_descriptors.h"
#include "support/os_faults.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::eventually;
using support::let_signals_in;
using support::spin_until;

std::uint64_t preemptions() { return stats().total.preemptions; }

// The sleeps are what loops are preempted for.
bool has_preempted_often() {
  return eventually([] {
    sleep_for(1ms);
    return preemptions() > 10;
  });
}

RT_TEST(Preemption, OthersRunWhileEveryPIsHeldByALoop) {
  std::atomic<bool> stop{false};
  std::atomic<int> looping{0};
  WaitGroup loops;
  for (int i = 0; i < procs(); ++i) {
    loops.go([&] {
      ++looping;
      spin_until(stop);
    });
  }
  while (looping.load() < procs()) yield();  // a yield from which only preemption brings it back
  stop.store(true);
  loops.wait();
}

RT_TEST(Preemption, TimersFireWhileEveryPIsHeldByALoop) {
  std::atomic<bool> stop{false};
  WaitGroup loops;
  for (int i = 0; i < procs(); ++i) loops.go([&] { spin_until(stop); });
  for (int i = 0; i < 5; ++i) sleep_for(1ms);
  stop.store(true);
  loops.wait();
}

// What the kernel tells of threads stands in files, which cannot be opened here.
RT_TEST(Preemption, WithoutDescriptorsLoopsAreStoppedAllTheSame) {
  support::NoDescriptors none;
  std::atomic<bool> stop{false};
  WaitGroup loops;
  for (int i = 0; i < procs() + 1; ++i) loops.go([&] { spin_until(stop); });
  // One for which there is no P does not run on without.
  int times_stopped = 0;
  EXPECT_TRUE(eventually([&] {
    sleep_for(1ms);
    times_stopped += sched::runtime->preempted.load(std::memory_order_relaxed);
    return times_stopped >= 3;
  }));
  stop.store(true);
  loops.wait();
}

TEST(Preemption, WithoutDescriptorsACallThatBlocksLosesItsPEvenIfNothingIsStopped) {
  for (const bool preempt : {true, false}) {
    run(Options{.procs = 1, .preempt = preempt}, [] {
      support::NoDescriptors none;
      std::atomic<bool> over{false};
      go([&] { over = true; });
      while (!over) usleep(100);
    });
  }
}

RT_TEST(Preemption, ALoopKeepsItsThreadAndItsRegisters) {
  static thread_local int of_this_thread = 0;
  std::atomic<int> wrong{0};
  WaitGroup loops;
  for (int i = 0; i < 2 * procs(); ++i) {
    loops.go([&, i] {
      const pid_t thread = gettid();
      of_this_thread = i;
      double sum = 0;
      auto until = std::chrono::steady_clock::now() + 60ms;
      while (std::chrono::steady_clock::now() < until) {
        for (int k = 1; k < 1000; ++k) sum += 1.0 / k;
        let_signals_in();
      }
      if (gettid() != thread || of_this_thread != i || !(sum > 0)) ++wrong;
    });
  }
  loops.wait();
  EXPECT_EQ(wrong.load(), 0);
}

RT_TEST(Preemption, RoundingModesStayTheGoroutinesOwn) {
  std::atomic<int> wrong{0};
  std::atomic<bool> stop{false};
  WaitGroup loops;
  for (int i = 0; i < 2 * procs(); ++i) {
    loops.go([&, i] {
      const int mode = i % 2 == 0 ? FE_UPWARD : FE_DOWNWARD;
      std::fesetround(mode);
      while (!stop.load(std::memory_order_relaxed)) {
        if (std::fegetround() != mode) ++wrong;
        let_signals_in();
      }
    });
  }
  EXPECT_TRUE(has_preempted_often());
  stop.store(true);
  loops.wait();
  EXPECT_EQ(wrong.load(), 0);
}

RT_TEST(Preemption, InsideACatchBlockTheExceptionStays) {
  std::atomic<int> wrong{0};
  std::atomic<bool> stop{false};
  WaitGroup loops;
  for (int i = 0; i < 2 * procs(); ++i) {
    loops.go([&, i] {
      try {
        throw std::runtime_error(std::to_string(i));
      } catch (const std::runtime_error& mine) {
        spin_until(stop);
        try {
          throw;
        } catch (const std::runtime_error& again) {
          if (&again != &mine || again.what() != std::to_string(i)) ++wrong;
        }
      }
    });
  }
  EXPECT_TRUE(has_preempted_often());
  stop.store(true);
  loops.wait();
  EXPECT_EQ(wrong.load(), 0);
}

// Whoever is stopped may hold the allocator's lock, or any other; those who wait for it lose their
// Ps to it.
RT_TEST(Preemption, InsideMallocPrintfAndLocksNothingGetsStuck) {
  std::mutex mutex;
  std::uint64_t guarded = 0;
  std::atomic<int> done{0};
  auto shared = std::make_shared<int>(1);
  WaitGroup loops;
  const int count = 4 * procs();
  for (int i = 0; i < count; ++i) {
    loops.go([&, i] {
      std::vector<std::unique_ptr<char[]>> kept(64);
      std::set<std::string> names;
      for (int k = 0; k < 4000; ++k) {
        kept[static_cast<std::size_t>(k) % kept.size()] =
            std::make_unique<char[]>(static_cast<std::size_t>(16 + k * 7 % 3000));
        auto copy = shared;
        names.insert(std::to_string(k % 50));
        char text[64];
        std::snprintf(text, sizeof text, "%d %s", i, names.begin()->c_str());
        std::lock_guard hold(mutex);
        guarded += std::strlen(text) > 0 ? 1 : 0;
      }
      ++done;
    });
  }
  for (int i = 0; i < 20; ++i) sleep_for(1ms);
  loops.wait();
  EXPECT_EQ(done.load(), count);
  EXPECT_EQ(guarded, static_cast<std::uint64_t>(count) * 4000);
}

TEST(Preemption, NobodyIsStoppedWhileNobodyWaits) {
  run(Options{.procs = 2}, [] {
    const std::uint64_t before = preemptions();
    WaitGroup loops;
    for (int i = 0; i < 1; ++i) {
      loops.go([] {
        auto until = std::chrono::steady_clock::now() + 50ms;
        while (std::chrono::steady_clock::now() < until) let_signals_in();
      });
    }
    auto until = std::chrono::steady_clock::now() + 50ms;
    while (std::chrono::steady_clock::now() < until) let_signals_in();
    loops.wait();
    EXPECT_EQ(preemptions(), before);
    EXPECT_EQ(stats().total.handoffs, 0U);
  });
}

// Touches that much of the stack, from the top down: an overflow meets the guard.
[[gnu::noinline]] void use_stack(std::size_t bytes) {
  auto* deep = static_cast<volatile char*>(__builtin_alloca(bytes));
  for (std::size_t i = bytes; i > 4096; i -= 4096) deep[i - 1] = 1;
}

constexpr std::size_t kSmallStack = 32 * 1024;
std::atomic<bool> loop_was_stopped{false};

// A stack of that size takes as long to map as it takes until a loop is stopped.
void* map_when_a_loop_is_stopped(void* address, std::size_t length, int protection, int flags,
                                 int fd, off_t offset) {
  if (length == kSmallStack && (flags & MAP_STACK) != 0) {
    const auto end = std::chrono::steady_clock::now() + 2s;
    while (sched::runtime->global.stopped() == 0 && std::chrono::steady_clock::now() < end) {
    }
    loop_was_stopped = true;
  }
  return mmap(address, length, protection, flags, fd, offset);
}

// The limit of stopped ones is reached at the moment at which a goroutine begins that asked for a
// small stack. So it is put off, and its thread runs a stopped one. What the thread begins later
// needs more than the small stack.
TEST(Preemption, NoGoroutineBeginsOnAStackThatAnotherAskedFor) {
  decltype(base::Os::map)::Function* const map = base::os().map;
  run(Options{.procs = 2, .max_preempted = 1}, [] {
    base::os().map = map_when_a_loop_is_stopped;
    for (int round = 0; round < 5; ++round) {
      loop_was_stopped = false;
      WaitGroup all;
      all.add(1);
      go(GoOptions{.stack_size = kSmallStack}, [&all] {
        use_stack(4 * 1024);
        all.done();
      });
      for (int i = 0; i < 3; ++i) all.go([] { spin_until(loop_was_stopped); });
      for (int i = 0; i < 20; ++i) {
        all.go([] {
          use_stack(64 * 1024);
          blocking([] { usleep(1000); });
        });
      }
      all.wait();
    }
  });
  base::os().map = map;
}

bool is_pending(int signal) {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, signal) == 1;
}

// A library may block all signals, and wait in between: then the thread keeps the mask. The
// goroutines after that could not be stopped, and each would run on beside the others.
TEST(Preemption, AThreadWhoseSignalAGoroutineBlockedLetsItInOnceItWasMissed) {
  run(Options{.procs = 1}, [] {
    std::atomic<bool> over{false};
    auto deaf = spawn([&over] {
      const ThreadLock same_thread;
      sigset_t urgent;
      sigemptyset(&urgent);
      sigaddset(&urgent, SIGURG);
      pthread_sigmask(SIG_BLOCK, &urgent, nullptr);
      while (!is_pending(SIGURG)) let_signals_in();
      EXPECT_TRUE(support::is_blocked(SIGURG));
      yield();
      EXPECT_FALSE(support::is_blocked(SIGURG));
      over = true;
    });
    while (!over.load()) yield();  // others, for which the loop is to be stopped
    deaf.join();
  });
}

TEST(Preemption, CanBeSwitchedOff) {
  run(Options{.procs = 1, .preempt = false}, [] {
    std::atomic<bool> ran{false};
    go([&] { ran.store(true); });
    auto until = std::chrono::steady_clock::now() + 50ms;
    while (std::chrono::steady_clock::now() < until) {
    }
    EXPECT_FALSE(ran.load());
    EXPECT_EQ(preemptions(), 0U);
    while (!ran.load()) yield();
  });
}

TEST(Preemption, ASignalThatCannotBeCaughtIsRefused) {
  for (int signal : {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, 32, 33, -1, SIGRTMAX + 1}) {
    EXPECT_THROW(run(Options{.preempt_signal = signal}, [] {}), std::invalid_argument) << signal;
  }
  for (int signal : {0, SIGUSR1, SIGRTMIN, SIGRTMAX}) {
    EXPECT_NO_THROW(run(Options{.preempt_signal = signal}, [] {})) << signal;
  }
}

TEST(Preemption, UsesTheSignalThatWasAskedFor) {
  static std::atomic<int> urgent_data{0};
  struct sigaction mine = {}, before;
  mine.sa_handler = [](int) { ++urgent_data; };
  sigaction(SIGURG, &mine, &before);
  run(Options{.procs = 1, .preempt_signal = SIGUSR2}, [] {
    std::atomic<bool> stop{false};
    WaitGroup loop;
    loop.go([&] { spin_until(stop); });
    go([&] { stop.store(true); });
    loop.wait();
    EXPECT_EQ(urgent_data.load(), 0);
    raise(SIGURG);
    EXPECT_EQ(urgent_data.load(), 1);
  });
  struct sigaction after;
  sigaction(SIGUSR2, nullptr, &after);
  EXPECT_EQ(after.sa_handler, SIG_DFL);
  sigaction(SIGURG, &before, nullptr);
}

TEST(Preemption, ASignalOfSomebodyElsesReachesTheHandlerThatWasThere) {
  static std::atomic<int> urgent_data{0};
  struct sigaction mine = {}, before;
  mine.sa_handler = [](int) { ++urgent_data; };
  sigaction(SIGURG, &mine, &before);
  run(Options{.procs = 2}, [] {
    urgent_data = 0;
    raise(SIGURG);
    EXPECT_EQ(urgent_data.load(), 1);
  });
  raise(SIGURG);
  EXPECT_EQ(urgent_data.load(), 2);
  sigaction(SIGURG, &before, nullptr);
}

TEST(Preemption, ErrnoSurvives) {
  run(Options{.procs = 1}, [] {
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0};
    WaitGroup loops;
    for (int i = 0; i < 3; ++i) {
      loops.go([&, i] {
        errno = 1000 + i;
        while (!stop.load(std::memory_order_relaxed)) {
          if (errno != 1000 + i) ++wrong;
        }
      });
    }
    EXPECT_TRUE(has_preempted_often());
    stop.store(true);
    loops.wait();
    EXPECT_EQ(wrong.load(), 0);
  });
}

TEST(Preemption, ProcsCanBeChangedWhileLoopsRun) {
  run(Options{.procs = 2}, [] {
    std::atomic<bool> stop{false};
    WaitGroup loops;
    for (int i = 0; i < 4; ++i) loops.go([&] { spin_until(stop); });
    for (const int n : {1, 4, 2, 3, 1}) {
      set_procs(n);
      EXPECT_EQ(procs(), n);
      sleep_for(1ms);
    }
    stop.store(true);
    loops.wait();
  });
}

// Main runs on one P and there are two threads. Further ones need the lock to begin.
template <class Main>
void run_with_few_births(std::mutex& lock, Main main) {
  run(Options{.procs = 2, .time_slice = 1ms}, [&] {
    std::atomic<bool> second_thread_runs = false;
    go([&] { second_thread_runs = true; });
    spin_until(second_thread_runs);
    set_procs(1);
    support::BirthsNeedLock births(lock);
    main();
  });
}

// The P that a new thread is to take must not wait for it for ever.
TEST(Preemption, AStoppedHolderOfALockThatNewThreadsNeedGoesOn) {
  std::mutex lock;  // for longer than any thread
  run_with_few_births(lock, [&lock] {
    std::atomic<bool> holds = false, wanted = false;
    WaitGroup holder;
    holder.go([&] {
      std::lock_guard hold(lock);
      holds = true;
      spin_until(wanted);
    });
    while (!holds) yield();  // it is stopped when this goes on, on the second thread
    set_procs(2);
    go([] {});  // somebody shall search: on a third thread, which needs the lock
    wanted = true;
    lock.lock();
    lock.unlock();
    holder.wait();
  });
}

// The joiner runs the holder in place, and the holder's entry stays behind in the ring, behind
// goroutines that wait for the lock on their threads. Only the entry in the stopped line can resume
// it.
TEST(Preemption, AStoppedHolderThatItsJoinerRanInPlaceGoesOn) {
  std::mutex lock;  // for longer than any thread
  run_with_few_births(lock, [&lock] {
    sleep_for(1ms);  // a new slice: join() runs the holder in place only while it lasts
    std::atomic<int> ran = 0;
    WaitGroup others;
    // For longer than it takes to stop the holder, and for more than the 61 turns after which a P
    // looks for stopped goroutines.
    for (int i = 0; i < 100; ++i) {
      others.go([&] {
        ++ran;
        const auto end = std::chrono::steady_clock::now() + 200us;
        while (std::chrono::steady_clock::now() < end) {
        }
      });
    }
    constexpr int kMoreThanThreads = 20;
    for (int i = 0; i < kMoreThanThreads; ++i) others.go([&] { std::lock_guard hold(lock); });
    JoinHandle<void> holder = spawn([&] {
      std::lock_guard hold(lock);
      while (ran.load(std::memory_order_relaxed) < 50) {
      }
    });
    others.go([] {});  // the holder is in the ring, not in the next slot
    holder.join();
    others.wait();
  });
}

}  // namespace
}  // namespace magpie
