// process_test.cc: what belongs to the process and its threads: fork, exec, signals, thread exit.

#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/sanitizer.h"
#include "support/blocked_signals.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::eventually;

int exit_code_of(pid_t child) {
  int status = 0;
  while (blocking([&] { return waitpid(child, &status, 0); }) != child) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

RT_TEST(Fork, FollowedByExecWorksFromAnyGoroutine) {
  WaitGroup group;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i) {
    group.go([&, i] {
      pid_t child = fork();
      if (child == 0) {
        const char code[] = {'e', 'x', 'i', 't', ' ', static_cast<char>('1' + i), '\0'};
        execl("/bin/sh", "sh", "-c", code, nullptr);
        _exit(99);
      }
      if (child < 0 || exit_code_of(child) != 1 + i) ++wrong;
    });
  }
  group.wait();
  EXPECT_EQ(wrong.load(), 0);
}

RT_TEST(Fork, InsideABlockingCallTheChildIsAPlainThread) {
  pid_t child = blocking([] { return fork(); });
  if (child == 0) _exit(goroutine_id() == 0 ? 7 : 8);
  EXPECT_EQ(exit_code_of(child), 7);
}

RT_TEST(Fork, TheChildIsThroughWithTimersAndGroupsOfItsParentAtOnce) {
  std::optional<Timer> stopped(std::in_place, 24h), destroyed(std::in_place, 24h);
  std::optional<Ticker> ticker(std::in_place, 24h);
  std::optional<Context> kept(Context::background().with_timeout(24h));
  std::optional<Context> cancelled(Context::background().with_timeout(24h));
  std::optional<TaskGroup> group(std::in_place);
  Context of_group = group->context();
  group->go([of_group] {
    std::error_code error;
    (void)sleep_for(24h, of_group, error);
  });
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    stopped->stop();
    destroyed.reset();
    ticker.reset();
    kept.reset();
    cancelled->cancel();
    group.reset();
    _exit(7);
  }
  EXPECT_EQ(exit_code_of(child), 7);
  of_group.cancel();
}

#if !defined(MAGPIE_TSAN) && \
    !defined(MAGPIE_ASAN)  // they do not support threads in the child of a program with threads
RT_TEST(Fork, TheChildHasNoRuntimeAndMayStartOne) {
  pid_t child = fork();
  if (child == 0) {
    if (goroutine_id() != 0) _exit(1);
    if (procs() != 0 || num_goroutines() != 0) _exit(2);
    try {
      go([] {});
      _exit(3);
    } catch (const std::logic_error&) {
    }
    int sum = run(Options{.procs = 2}, [] {
      Chan<int> values;
      for (int i = 0; i < 10; ++i) go([values, i] { values.send(i); });
      int all = 0;
      for (int i = 0; i < 10; ++i) all += *values.recv();
      return all;
    });
    _exit(sum == 45 ? 0 : 4);
  }
  EXPECT_EQ(exit_code_of(child), 0);
}

// Threads ask for the runtime although there is none: a child that found one of them at the gate
// would wait for it for ever.
TEST(Fork, TheChildMayStartARuntimeWhateverOtherThreadsAskedFor) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) (void)num_goroutines();
    });
  }
  int wrong = 0;
  for (int i = 0; i < 30 && wrong == 0; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      run([] {});
      _exit(7);
    }
    if (exit_code_of(child) != 7) ++wrong;
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Forks many times, while another thread does `beside` again and again, and counts the children
// that could not use run().
template <class F>
int children_without_run(F beside) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) beside();
  });
  constexpr int kForks = 100;
  int without = 0;
  for (int i = 0; i < kForks; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      try {
        run([] { spawn([] {}).join(); });
      } catch (const std::logic_error&) {
        _exit(1);
      }
      _exit(0);
    }
    if (exit_code_of(child) != 0) ++without;
  }
  stop = true;
  other.join();
  return without;
}

TEST(Fork, TheChildMayStartARuntimeWhereverInRunAnotherThreadWas) {
  EXPECT_EQ(children_without_run([] { run([] {}); }), 0);
}

TEST(Fork, TheChildsRunReturnsAlthoughAnotherThreadWasAboutToLookForARuntime) {
  EXPECT_EQ(children_without_run([] { (void)procs(); }), 0);
}
#endif

// Handlers of fork() hold locks for the time of the fork. A goroutine that has lost its P must not
// wait for one among them: if the runtime ends it never goes on, and nobody can fork any more.
TEST(Fork, ByAGoroutineThatIsDroppedLeavesNoLockHeld) {
  Signals needed_by_servers({SIGUSR2});  // with it come all handlers
  for (int round = 0; round < 50; ++round) {
    run(Options{.procs = 1}, [] {
      for (int i = 0; i < 12; ++i) {
        go([i] {
          usleep(static_cast<useconds_t>(100 * i));  // it loses its P
          pid_t child = fork();
          if (child == 0) _exit(0);
          while (waitpid(child, nullptr, 0) != child) {
          }
        });
      }
      sleep_for(500us);
    });
  }
  pid_t child = fork();
  if (child == 0) _exit(7);
  EXPECT_EQ(exit_code_of(child), 7);
}

// A signal of the user's own may interrupt a goroutine, the scheduler, or a thread that was
// preempted.
TEST(Signals, HandlersOfTheUserRunBesideEverything) {
  static std::atomic<int> ticks{0};
  ticks = 0;
  struct sigaction mine = {}, before;
  mine.sa_handler = [](int) { ticks.fetch_add(1, std::memory_order_relaxed); };
  mine.sa_flags = SA_RESTART;
  sigaction(SIGPROF, &mine, &before);
  itimerval every{{0, 500}, {0, 500}};  // of CPU time: as profilers do
  setitimer(ITIMER_PROF, &every, nullptr);
  run(Options{.procs = 2}, [] {
    std::atomic<bool> stop{false};
    WaitGroup group;
    for (int i = 0; i < 4; ++i) {
      group.go([&] {
        while (!stop.load(std::memory_order_relaxed)) usleep(0);
      });
      group.go([&] {
        while (!stop.load(std::memory_order_relaxed)) yield();
      });
    }
    EXPECT_TRUE(eventually([] {
      sleep_for(1ms);
      return ticks.load() > 50;
    }));
    stop.store(true);
    group.wait();
  });
  itimerval never{};
  setitimer(ITIMER_PROF, &never, nullptr);
  sigaction(SIGPROF, &before, nullptr);
}

// On every thread that goroutines can be on: none returns before all have one.
void on_each_thread(void (*look)()) {
  run(Options{.procs = 4}, [look] {
    WaitGroup group;
    std::atomic<int> looked{0};
    for (int i = 0; i < 4; ++i) {
      group.go([&] {
        look();
        ++looked;
        blocking([&] {
          while (looked.load() != 4) usleep(100);
        });
      });
    }
    group.wait();
  });
}

TEST(Signals, ThatOfPreemptionIsLetInWhateverTheCallerBlocksAndBlockedAgainAfterRun) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  on_each_thread([] {
    EXPECT_FALSE(support::is_blocked(SIGURG));
    EXPECT_TRUE(support::is_blocked(SIGUSR1));
  });
  EXPECT_TRUE(support::is_blocked(SIGURG));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  on_each_thread([] { EXPECT_FALSE(support::is_blocked(SIGURG)); });
  EXPECT_FALSE(support::is_blocked(SIGURG));
}

TEST(Threads, KeepTheSchedulingPolicyOfTheCaller) {
  const sched_param none{};
  ASSERT_EQ(sched_setscheduler(0, SCHED_BATCH, &none), 0);
  on_each_thread([] { EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH); });
  EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
  sched_setscheduler(0, SCHED_OTHER, &none);
}

// The threads that goroutines ran on end with run(): what they left in thread_locals is destroyed
// then.
TEST(Threads, DestructorsOfThreadLocalsRunWhenTheRuntimesThreadsEnd) {
  static std::atomic<int> made{0}, gone{0};
  struct Counted {
    Counted() { ++made; }
    ~Counted() { ++gone; }
    void touch() {}
  };
  run(Options{.procs = 4}, [] {
    WaitGroup group;
    for (int i = 0; i < 16; ++i) {
      group.go([] {
        static thread_local Counted counted;
        counted.touch();
        blocking([] { usleep(1000); });
      });
    }
    group.wait();
  });
  EXPECT_GE(made.load(), 1);
  EXPECT_GE(gone.load(), made.load() - 1);  // the thread that called run() lives on
}

// As a profiler does that notes what each thread is at: some threads run no goroutine at that
// moment.
TEST(Signals, AHandlerMayAskForTheGoroutinesNumberOnAnyThread) {
  static std::atomic<int> asked{0};
  asked = 0;
  struct sigaction mine = {}, before;
  mine.sa_handler = [](int) {
    (void)goroutine_id();
    ++asked;
  };
  mine.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &mine, &before);
  run(Options{.procs = 4}, [] {
    WaitGroup group;
    for (int i = 0; i < 8; ++i) group.go([] { blocking([] { usleep(1'000); }); });
    group.wait();
    sleep_for(1ms);
    int sent = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
      const int thread = std::stoi(entry.path().filename());
      if (syscall(SYS_tgkill, getpid(), thread, SIGUSR1) == 0) ++sent;
    }
    EXPECT_GT(sent, 2);
    // Those that sleep in a call which ThreadSanitizer does not know get it when they wake up.
    EXPECT_TRUE(eventually([&] { return asked.load() != 0; }));
  });
  sigaction(SIGUSR1, &before, nullptr);
}

TEST(Signals, AHandlerForFaultsThatIsInstalledDuringRunStays) {
  struct sigaction mine = {}, before, after;
  mine.sa_handler = [](int) { _exit(9); };
  sigaction(SIGSEGV, nullptr, &before);
  run([&] { sigaction(SIGSEGV, &mine, nullptr); });
  sigaction(SIGSEGV, &before, &after);
  EXPECT_EQ(after.sa_handler, mine.sa_handler);

  run([] {});
  sigaction(SIGSEGV, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
}

}  // namespace
}  // namespace magpie
