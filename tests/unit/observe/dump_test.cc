#include <magpie/dump.h>
#include <magpie/magpie.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <ostream>
#include <set>
#include <sstream>
#include <streambuf>
#include <string>
#include <thread>

#include "sched/core/m.h"
#include "sched/current.h"
#include "support/forked_child.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

// The group of the goroutines with that name; null: there is none.
const GoroutineInfo* find(const GoroutineDump& dump, const std::string& name) {
  for (const GoroutineInfo& info : dump.groups) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

// Looks until the goroutine waits for that reason.
GoroutineInfo wait_until_parked(const std::string& name, const std::string& reason) {
  for (;;) {
    GoroutineDump dump = dump_goroutines();
    const GoroutineInfo* info = find(dump, name);
    if (info != nullptr && info->state == "waiting" && info->reason == reason && info->has_stack)
      return *info;
    yield();
  }
}

template <class F>
void start(const char* name, F f) {
  go(GoOptions{.name = name}, f);
}

TEST(Dump, IsEmptyWithoutARuntime) {
  EXPECT_EQ(dump_goroutines().goroutines, 0u);
  std::ostringstream text;
  dump(text);
  EXPECT_EQ(text.str(), "");
}

TEST(Dump, TellsForEachPrimitiveWhyAndOnWhatItsWaitersWait) {
  // They outlive run(), which drops their waiters.
  Mutex mutex, other;
  RWMutex rw_mutex;
  CondVar changed;
  Semaphore semaphore(0);
  WaitGroup group;
  Chan<int> channel;
  run([&] {
    mutex.lock();
    rw_mutex.lock();
    group.add(1);
    start("mutex", [&] { mutex.lock(); });
    start("reader", [&] { rw_mutex.lock_shared(); });
    start("writer", [&] { rw_mutex.lock(); });
    start("cond", [&] {
      other.lock();
      changed.wait(other);
    });
    start("semaphore", [&] { semaphore.acquire(); });
    start("group", [&] { group.wait(); });
    start("receiver", [&] { (void)channel.recv(); });
    start("sleeper", [] { sleep_for(std::chrono::hours(1)); });
    auto on = [](const char* what, const void* object) {
      std::ostringstream text;
      text << what << " " << object;
      return text.str();
    };
    EXPECT_EQ(wait_until_parked("mutex", "Mutex lock").object_text, on("Mutex", &mutex));
    EXPECT_EQ(wait_until_parked("mutex", "Mutex lock").waits_for, goroutine_id());
    EXPECT_EQ(wait_until_parked("reader", "RWMutex lock_shared").object_text,
              on("RWMutex", &rw_mutex));
    EXPECT_EQ(wait_until_parked("writer", "RWMutex lock").object_text, on("RWMutex", &rw_mutex));
    EXPECT_EQ(wait_until_parked("cond", "CondVar wait").object_text, on("CondVar", &changed));
    EXPECT_EQ(wait_until_parked("semaphore", "Semaphore acquire").object_text,
              on("Semaphore", &semaphore));
    EXPECT_EQ(wait_until_parked("group", "WaitGroup wait").object_text, on("WaitGroup", &group));
    EXPECT_NE(wait_until_parked("receiver", "chan receive").object, 0u);
    EXPECT_EQ(wait_until_parked("sleeper", "sleep").object_text, "");
    EXPECT_EQ(wait_until_parked("mutex", "Mutex lock").started_by, goroutine_id());
    EXPECT_GT(wait_until_parked("mutex", "Mutex lock").frames.size(), 3u);
  });
}

TEST(Dump, FoldsGoroutinesWithEqualStacks) {
  run([] {
    constexpr std::size_t kMany = 1'000;
    Chan<int> channel;
    for (std::size_t i = 0; i < kMany; ++i) start("alike", [channel] { (void)channel.recv(); });
    // A few that found the channel's lock taken wait in another function.
    for (std::size_t parked = 0, groups = 0; parked != kMany || groups > 4; yield()) {
      parked = groups = 0;
      for (const GoroutineInfo& info : dump_goroutines().groups) {
        if (info.name != "alike" || info.reason != "chan receive" || !info.has_stack) continue;
        parked += info.count;
        ++groups;
      }
    }
  });
}

TEST(Dump, ShowsWhereAGoroutineLoopsForEver) {
  run(Options{.procs = 2}, [] {
    std::atomic<bool> is_over{false}, has_ended{false};
    start("looping", [&] {
      while (!is_over.load(std::memory_order_relaxed)) {
      }
      has_ended = true;
    });
    for (bool seen = false; !seen; yield()) {
      GoroutineDump dump = dump_goroutines();
      const GoroutineInfo* info = find(dump, "looping");
      seen = info != nullptr && info->state != "fresh" && info->has_stack && !info->frames.empty();
    }
    is_over.store(true, std::memory_order_relaxed);
    while (!has_ended) yield();  // it looks at what is on this stack
  });
}

TEST(Dump, NamesACycleOfTwoMutexesAndWhoIsStuckBehindIt) {
  run([] {
    Mutex a, b;
    WaitGroup both_hold_one;
    both_hold_one.add(2);
    auto take = [&](Mutex& first, Mutex& second) {
      first.lock();
      both_hold_one.done();
      both_hold_one.wait();
      second.lock();
    };
    start("left", [&] { take(a, b); });
    start("right", [&] { take(b, a); });
    GoroutineInfo left = wait_until_parked("left", "Mutex lock");
    GoroutineInfo right = wait_until_parked("right", "Mutex lock");
    EXPECT_EQ(left.waits_for, right.id);
    EXPECT_EQ(right.waits_for, left.id);
    start("behind", [&] { a.lock(); });
    (void)wait_until_parked("behind", "Mutex lock");
    GoroutineDump dump = dump_goroutines();
    ASSERT_EQ(dump.cycles.size(), 1u);
    EXPECT_EQ(dump.cycles[0],
              (std::vector{std::min(left.id, right.id), std::max(left.id, right.id)}));
    EXPECT_EQ(dump.stuck_behind, 1u);
  });
}

TEST(Dump, KnowsThatAWaitThatItSawBeforeIsStillTheSame) {
  Semaphore semaphore(0);
  run([&] {
    Chan<int> channel;
    start("waiter", [&] {
      (void)channel.recv();
      semaphore.acquire();
    });
    // A look may see it while it parks, without a stack: so nothing is said of the first.
    (void)wait_until_parked("waiter", "chan receive");
    EXPECT_GE(wait_until_parked("waiter", "chan receive").waited_for.count(), 0);
    sleep_for(std::chrono::milliseconds(10));  // longer than looks that count as one
    const auto begin = std::chrono::steady_clock::now();
    channel.send(1);
    const auto waited = wait_until_parked("waiter", "Semaphore acquire").waited_for;
    EXPECT_LE(waited, std::chrono::steady_clock::now() - begin + std::chrono::milliseconds(1));
    EXPECT_GE(wait_until_parked("waiter", "Semaphore acquire").waited_for.count(), 0);
  });
}

// The goroutines that are dropped while they dump give nothing back: support/known_leaks.cc.
TEST(Dump, OfAGoroutineThatIsDroppedMeanwhileIsNotInTheWayOfTheNext) {
  for (int i = 0; i < 20; ++i) {
    run(Options{.procs = 4}, [i] {
      for (int k = 0; k < 200; ++k) go([] { sleep_for(std::chrono::hours(1)); });
      for (int k = 0; k < 3; ++k) {
        go([] {
          for (;; yield()) (void)dump_goroutines();
        });
      }
      for (int k = 0; k < i; ++k) yield();
      if (i % 3 == 0) sleep_for(std::chrono::microseconds(37 * i));
    });
  }
  run([] { EXPECT_EQ(dump_goroutines().goroutines, 1u); });
}

TEST(Dump, ToAPipeThatNobodyReadsIsDropped) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  run([&] { dump(ends[1]); });
  close(ends[1]);
}

// Its text may be long, and so may be its work: others need not wait for its P meanwhile.
TEST(Dump, OfAGoroutineIsABlockingCallAllTheTime) {
  class Watching : public std::streambuf {
   public:
    bool was_blocking = true;
    int writes = 0;

   private:
    int overflow(int c) override {
      note();
      return c;
    }
    std::streamsize xsputn(const char*, std::streamsize count) override {
      note();
      return count;
    }
    void note() {
      ++writes;
      was_blocking = was_blocking && sched::current_m()->is_in_blocking_call();
    }
  };
  run([] {
    Watching watching;
    std::ostream out(&watching);
    dump(out);
    EXPECT_GT(watching.writes, 0);
    EXPECT_TRUE(watching.was_blocking);
    EXPECT_FALSE(sched::current_m()->is_in_blocking_call());
    EXPECT_EQ(dump_goroutines().groups.at(0).reason, "") << "its own goroutine just runs";
  });
}

TEST(Dump, WorksInTheChildOfAForkWhileAThreadDumps) {
  if (const char* trouble = support::trouble_of_forked_child()) GTEST_SKIP() << trouble;
  std::atomic<bool> is_over{false};
  run([&] {
    std::thread dumper([&] {
      while (!is_over) (void)dump_goroutines();
    });
    for (int i = 0; i < 10; ++i) {
      pid_t child = fork();
      if (child == 0) {
        alarm(60);
        run([] { (void)dump_goroutines(); });
        _exit(0);
      }
      int status = -1;
      EXPECT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
    is_over = true;
    dumper.join();
  });
}

// Stderr goes to a file in memory that can be read meanwhile.
class WatchedStderr {
 public:
  WatchedStderr() { dup2(file_, STDERR_FILENO); }
  ~WatchedStderr() {
    dup2(before_, STDERR_FILENO);
    close(before_);
    close(file_);
  }
  WatchedStderr(const WatchedStderr&) = delete;
  WatchedStderr& operator=(const WatchedStderr&) = delete;

  std::string text() const {
    std::string text(std::size_t{1} << 20, '\0');
    text.resize(static_cast<std::size_t>(pread(file_, text.data(), text.size(), 0)));
    return text;
  }
  // Blocks until it contains the text.
  void wait_for(const std::string& wanted) const {
    while (text().find(wanted) == std::string::npos) sleep_for(std::chrono::milliseconds(1));
  }

 private:
  int before_ = dup(STDERR_FILENO);
  int file_ = memfd_create("stderr", MFD_CLOEXEC);
};

TEST(Dump, IsPrintedOnSigquitAndTheProgramGoesOn) {
  Semaphore semaphore(0);
  run([&] {
    WatchedStderr text;
    start("parked", [&] { semaphore.acquire(); });
    (void)wait_until_parked("parked", "Semaphore acquire");
    kill(getpid(), SIGQUIT);
    text.wait_for("(parked) [Semaphore acquire], started by goroutine 1, on Semaphore");
  });
}

TEST(Dump, LeavesSigquitToAProgramThatHandlesIt) {
  struct sigaction before;
  sigaction(SIGQUIT, nullptr, &before);
  signal(SIGQUIT, SIG_IGN);
  run([] {
    struct sigaction now;
    sigaction(SIGQUIT, nullptr, &now);
    EXPECT_EQ(now.sa_handler, SIG_IGN);
  });
  sigaction(SIGQUIT, &before, nullptr);
}

TEST(Dump, TheWatchdogReportsAGoroutineThatWaitsForALockForLong) {
  Mutex mutex;
  run(Options{.report_blocked_after = std::chrono::milliseconds(20)}, [&] {
    WatchedStderr text;
    mutex.lock();
    start("late", [&] { mutex.lock(); });
    text.wait_for("(late) waits for a lock for more than");
    text.wait_for("held by goroutine 1");
  });
}

TEST(Dump, TheWatchdogDoesNotReportAHundredGoroutinesAgainAndAgain) {
  Mutex mutex;
  run(Options{.report_blocked_after = std::chrono::milliseconds(20)}, [&] {
    WatchedStderr watched;
    mutex.lock();
    for (int i = 0; i < 100; ++i)
      start(("stuck " + std::to_string(i)).c_str(), [&] { mutex.lock(); });
    watched.wait_for("more goroutines wait for locks");
    sleep_for(std::chrono::milliseconds(50));  // some looks more
    const std::string text = watched.text();
    int reports = 0;
    for (std::size_t at = 0; (at = text.find("waits for a lock", at)) != text.npos; ++at) ++reports;
    EXPECT_EQ(reports, 64);
  });
}

// While they run and wait by turns.
TEST(Dump, NamesEachGoroutineOnce) {
  run(Options{.procs = 4}, [] {
    constexpr int kPairs = 20;
    std::atomic<bool> stop{false};
    WaitGroup all;
    std::set<std::uint64_t> ids;
    Mutex mutex;
    for (int i = 0; i < kPairs; ++i) {
      Chan<void> there, back;
      auto play = [&](Chan<void> first, Chan<void> second, bool begins) {
        {
          std::lock_guard its(mutex);
          ids.insert(goroutine_id());
        }
        if (begins) first.send();
        while (second.recv() && !stop) first.send();
        first.close();
      };
      all.go([play, there, back] { play(there, back, true); });
      all.go([play, there, back] { play(back, there, false); });
    }
    ASSERT_TRUE(support::eventually([&] {
      std::lock_guard hold(mutex);
      return ids.size() == 2 * kPairs;
    }));
    for (int round = 0; round < 100; ++round) {
      std::map<std::uint64_t, int> named;
      for (const GoroutineInfo& group : dump_goroutines(Fold::no).groups)
        for (std::uint64_t id : group.ids) ++named[id];
      for (std::uint64_t id : ids) ASSERT_EQ(named[id], 1) << "goroutine " << id;
    }
    stop = true;
    all.wait();
  });
}

TEST(Dump, TellsOfAGoroutineThatComputesForLong) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer keeps signals from a thread that computes: it has no stack";
#endif
  std::atomic<std::uint64_t> slow{0};
  std::string its_name;
  on_slow([&](const SlowGoroutine& one) {
    if (one.blocks || one.frames.empty()) return;
    its_name = one.name;
    slow = one.id;
  });
  run(Options{.report_slow = std::chrono::milliseconds(2)}, [&] {
    spawn(GoOptions{.name = "cruncher"}, [&] {
      while (slow.load() == 0) {
        for (int i = 0; i < 1'000'000; ++i) asm volatile("");
      }
      EXPECT_EQ(slow.load(), goroutine_id());
    }).join();
  });
  on_slow(nullptr);
  EXPECT_EQ(its_name, "cruncher");
}

}  // namespace
}  // namespace magpie
