// procs_test.cc: how many Ps there are, and changing it while everything goes on.

#include "sched/run/procs.h"

#include <magpie/magpie.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/sanitizer.h"
#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"
#include "unit/cpus/fake_tree.h"
#include "unit/sched/fake_cpus.h"

std::atomic<int> magpie::support::fake_cpus{0};

// Stands before libc's. See fake_cpus.h.
extern "C" int sched_getaffinity(pid_t pid, std::size_t bytes, cpu_set_t* mask) noexcept {
  if (const int wanted = magpie::support::fake_cpus; wanted != 0) {
    std::memset(mask, 0, bytes);
    for (int i = 0; i < wanted; ++i) CPU_SET_S(i, bytes, mask);
    return 0;
  }
  const long written = syscall(SYS_sched_getaffinity, pid, bytes, mask);
  if (written < 0) return -1;
  std::memset(reinterpret_cast<char*>(mask) + written, 0,
              bytes - static_cast<std::size_t>(written));
  return 0;
}

namespace magpie {
namespace {

using support::eventually;
using support::fake_cpus;
using support::PlainThread;

// Goroutines that yield, start others and count their rounds until it is destroyed.
class Load {
 public:
  explicit Load(std::size_t goroutines) : rounds_(goroutines) {
    for (std::size_t i = 0; i < goroutines; ++i) {
      all_.go([this, i] {
        while (!over_.load(std::memory_order_relaxed)) {
          rounds_[i].fetch_add(1, std::memory_order_relaxed);
          if (i % 4 == 0) spawn([] {}).detach();
          if (i % 4 == 1) spawn([] { yield(); }).join();
          yield();
        }
      });
    }
  }
  ~Load() {
    over_ = true;
    all_.wait();
  }

  // Waits until every goroutine has gone round once more.
  [[nodiscard]] bool goes_on() {
    std::vector<std::uint64_t> before;
    for (auto& rounds : rounds_) before.push_back(rounds.load());
    return eventually([&] {
      for (std::size_t i = 0; i < rounds_.size(); ++i) {
        if (rounds_[i].load() == before[i]) return false;
      }
      return true;
    });
  }

 private:
  std::vector<std::atomic<std::uint64_t>> rounds_;
  std::atomic<bool> over_{false};
  WaitGroup all_;
};

RT_TEST(SetProcs, ReturnsTheOldNumberAndChangesIt) {
  const int before = procs();
  EXPECT_EQ(set_procs(3), before);
  EXPECT_EQ(procs(), 3);
  EXPECT_EQ(set_procs(3), 3);
}

RT_TEST(SetProcs, EveryGoroutineGoesOnAtEachSize) {
#ifdef MAGPIE_TSAN
  Load load(12);
#else
  Load load(60);
#endif
  for (const int n : {2, 1, 3, 8, 1, 16, 5, 64, 2}) {
    set_procs(n);
    EXPECT_EQ(procs(), n);
    EXPECT_EQ(stats().procs.size(), static_cast<std::size_t>(n));
    ASSERT_TRUE(load.goes_on()) << "at " << n;
  }
}

RT_TEST(SetProcs, QueuedGoroutinesAreNotLostWhenTheirPIsRemoved) {
  const auto goroutines = static_cast<std::size_t>(support::scaled(5000));
  std::vector<std::atomic<int>> runs(goroutines);
  WaitGroup all;
  set_procs(16);
  for (std::size_t i = 0; i < goroutines; ++i) {
    all.go([&runs, i] {
      runs[i].fetch_add(1);
      yield();
    });
    if (i % 500 == 10) set_procs(i % 1000 == 10 ? 1 : 16);
  }
  set_procs(1);
  all.wait();
  for (std::size_t i = 0; i < goroutines; ++i) ASSERT_EQ(runs[i], 1) << i;
}

// Without preemption: one that was stopped halfway has not ended, and would count.
TEST(SetProcs, AfterShrinkingNoMoreThanThatManyRunAtOnce) {
  for (const int procs_before : {1, 2, 8}) {
    run(Options{.procs = procs_before, .preempt = false}, [] {
      set_procs(8);
      set_procs(2);
      std::atomic<int> running{0}, most{0};
      WaitGroup all;
      for (int i = 0; i < 500; ++i) {
        all.go([&] {
          const int now = running.fetch_add(1) + 1;
          for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
          }
          for (int k = 0; k < 1000; ++k) (void)running.load();
          running.fetch_sub(1);
        });
      }
      all.wait();
      // Whoever lost its P, because its thread slept in a lock of a sanitizer's, has not ended
      // either.
      EXPECT_LE(static_cast<std::uint64_t>(most), 2 + stats().total.handoffs);
    });
  }
}

RT_TEST(SetProcs, SeveralGoroutinesMayCallItAtTheSameTime) {
  Load load(20);
  WaitGroup all;
  for (int i = 0; i < 8; ++i) {
    all.go([i] {
      for (int round = 0; round < 4; ++round) set_procs(1 + (i * 7 + round) % 9);
    });
  }
  all.wait();
  EXPECT_TRUE(load.goes_on());
  set_procs(2);
  EXPECT_EQ(procs(), 2);
}

RT_TEST(SetProcs, APlainThreadMayCallIt) {
  Load load(20);
  PlainThread thread([] {
    for (const int n : {1, 4, 2, 8, 1, 3}) {
      set_procs(n);
      EXPECT_EQ(procs(), n);
    }
  });
  thread.join();
  EXPECT_EQ(procs(), 3);
  EXPECT_TRUE(load.goes_on());
}

RT_TEST(SetProcs, GoroutinesAndPlainThreadsMayCallItAtTheSameTime) {
  Load load(20);
  auto change = [](int first) {
    for (int round = 0; round < 6; ++round) set_procs(1 + (first + round) % 8);
  };
  std::optional<PlainThread> threads[2];
  for (auto& thread : threads) thread.emplace([&] { change(3); });
  WaitGroup all;
  for (int i = 0; i < 4; ++i) all.go([&change, i] { change(i); });
  all.wait();
  for (auto& thread : threads) thread->join();
  EXPECT_TRUE(load.goes_on());
}

TEST(SetProcs, MainMayReturnWhileOthersCallIt) {
  for (int round = 0; round < 4; ++round) {
    std::atomic<bool> over{false};
    std::optional<std::thread> outsider;
    run(Options{.procs = 2}, [&] {
      for (int i = 0; i < 4; ++i) {
        go([i] {
          for (int n = i;; ++n) set_procs(1 + n % 6);
        });
      }
      outsider.emplace([&over] {
        try {
          for (int n = 1; !over; ++n) set_procs(1 + n % 6);
        } catch (const std::logic_error&) {
          // the runtime ends
        }
      });
      for (int i = 0; i < 20; ++i) yield();
    });
    over = true;
    outsider->join();
  }
}

// The header promises that any call into the runtime is enough.
TEST(SetProcs, DoesNotWaitForEverForAGoroutineThatOnlyJoinsInPlace) {
  run(Options{.procs = 2}, [] {
    std::atomic<bool> over{false}, began{false};
    auto joiner = spawn([&] {
      began = true;
      while (!over.load(std::memory_order_relaxed)) spawn([] {}).join();
    });
    ASSERT_TRUE(eventually([&] { return began.load(); }));
    set_procs(1);
    over = true;
    joiner.join();
  });
}

// Where /proc and the cgroups are, with one v2 cgroup whose quota the test sets.
class FakeQuota {
 public:
  FakeQuota() {
    unsetenv("MAGPIE_PROCS");
    fake_cpus = 8;
    tree_.set_cgroup("0::/app\n");
    tree_.set_mountinfo(cpus::v2_mount("/", "/sys/fs/cgroup"));
    sched::set_file_root(tree_.root());
  }
  ~FakeQuota() {
    sched::set_file_root("");
    fake_cpus = 0;
    unsetenv("MAGPIE_PROCS");
  }

  // In CPUs' worth of time; 0: no limit.
  void set(int cpus) {
    // Replaced in one step, as the kernel does: a reader never sees half of it.
    const std::string file = "/sys/fs/cgroup/app/cpu.max";
    tree_.write(file + ".new", (cpus == 0 ? "max" : std::to_string(cpus * 100'000)) + " 100000\n");
    std::filesystem::rename(tree_.root() + file + ".new", tree_.root() + file);
  }

 private:
  cpus::FakeTree tree_;
};

TEST(DefaultNumberOfProcs, IsWhatTheCgroupGrants) {
  FakeQuota quota;
  quota.set(3);
  run([] { EXPECT_EQ(procs(), 3); });
  quota.set(5);
  run([] { EXPECT_EQ(procs(), 5); });
}

TEST(DefaultNumberOfProcs, WithoutAQuotaIsTheNumberOfCpus) {
  FakeQuota quota;
  quota.set(0);
  run([] {
    EXPECT_EQ(procs(), 8);
    EXPECT_EQ(num_cpu(), 8);
  });
}

TEST(DefaultNumberOfProcs, AQuotaAboveTheCpusChangesNothing) {
  FakeQuota quota;
  quota.set(100);
  run([] { EXPECT_EQ(procs(), 8); });
}

TEST(DefaultNumberOfProcs, MagpieProcsGoesBeforeTheQuota) {
  FakeQuota quota;
  quota.set(3);
  setenv("MAGPIE_PROCS", "6", 1);
  run([] { EXPECT_EQ(procs(), 6); });
}

TEST(DefaultNumberOfProcs, OptionsGoBeforeMagpieProcs) {
  FakeQuota quota;
  quota.set(3);
  setenv("MAGPIE_PROCS", "6", 1);
  run(Options{.procs = 2}, [] { EXPECT_EQ(procs(), 2); });
}

TEST(FollowingTheQuota, ABusyProgramFollowsItUpAndDown) {
  FakeQuota quota;
  quota.set(3);
  run([&] {
    ASSERT_EQ(procs(), 3);
    Load load(20);
    for (const int n : {5, 2, 4}) {
      quota.set(n);
      ASSERT_TRUE(eventually([n] { return procs() == n; })) << n;
      ASSERT_TRUE(load.goes_on());
    }
  });
}

TEST(FollowingTheQuota, AProgramWhoseGoroutinesOnlyYieldFollowsItToo) {
  FakeQuota quota;
  quota.set(3);
  run([&] {
    std::atomic<bool> over{false};
    WaitGroup all;
    for (int i = 0; i < 50; ++i) {
      all.go([&over] {
        while (!over.load(std::memory_order_relaxed)) yield();
      });
    }
    quota.set(6);
    EXPECT_TRUE(eventually([] { return procs() == 6; }, std::chrono::seconds(20)));
    over = true;
    all.wait();
  });
}

// Looked up about once a second; longer than that nothing happens.
void expect_not_followed(FakeQuota& quota) {
  const int before = procs();
  Load load(20);
  quota.set(before == 5 ? 6 : 5);
  EXPECT_FALSE(
      eventually([before] { return procs() != before; }, std::chrono::milliseconds(2'200)));
}

TEST(FollowingTheQuota, EndsWithSetProcs) {
  FakeQuota quota;
  quota.set(3);
  run([&] {
    set_procs(4);
    expect_not_followed(quota);
  });
}

TEST(FollowingTheQuota, DoesNotBeginWhenOptionsSayHowMany) {
  FakeQuota quota;
  quota.set(3);
  run(Options{.procs = 2}, [&] { expect_not_followed(quota); });
}

TEST(FollowingTheQuota, DoesNotBeginWhenMagpieProcsSaysHowMany) {
  FakeQuota quota;
  quota.set(3);
  setenv("MAGPIE_PROCS", "2", 1);
  run([&] { expect_not_followed(quota); });
}

}  // namespace
}  // namespace magpie
