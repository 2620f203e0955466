#include "base/other_thread.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "base/sanitizer.h"
#include "support/no_descriptors.h"

namespace magpie::base {
namespace {

// For ever, if need be: the test's time limit ends it.
void wait_until(auto condition) {
  while (!condition()) std::this_thread::yield();
}

// A thread that waits in the kernel until it is told to go on.
class Sleeper {
 public:
  Sleeper() {
    EXPECT_EQ(pipe(ends_.data()), 0);
    thread_ = std::thread([this] {
      id_ = gettid();
      char byte;
      EXPECT_EQ(read(ends_[0], &byte, 1), 1);
    });
    wait_until([this] { return id_ != 0 && is_asleep_in_kernel(id_); });
  }
  ~Sleeper() {
    if (thread_.joinable()) end();
    for (const int end : ends_) close(end);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  pid_t id() const { return id_; }
  void end() {
    EXPECT_EQ(write(ends_[1], "x", 1), 1);
    thread_.join();
  }

 private:
  std::array<int, 2> ends_{};
  std::atomic<pid_t> id_{0};
  std::thread thread_;
};

TEST(OtherThread, OneThatComputesUsesCpuTimeAndIsNotAsleep) {
  std::atomic<pid_t> id{0};
  std::atomic<bool> stop{false};
  std::thread thread([&] {
    id = gettid();
    while (!stop.load(std::memory_order_relaxed)) {
    }
  });
  wait_until([&] { return id != 0; });
  const std::int64_t before = cpu_ns_of(id);
  wait_until([&] { return cpu_ns_of(id) > before; });
  wait_until([&] { return !is_asleep_in_kernel(id); });
  stop = true;
  thread.join();
}

TEST(OtherThread, WithoutDescriptorsItsClockTellsWhetherItRuns) {
  Sleeper sleeper;
  std::atomic<pid_t> id{0};
  std::atomic<bool> stop{false};
  std::thread thread([&] {
    id = gettid();
    while (!stop.load(std::memory_order_relaxed)) {
    }
  });
  wait_until([&] { return id != 0; });
  {
    support::NoDescriptors none;
    EXPECT_EQ(doing_of(id), Doing::not_told);
    EXPECT_EQ(sleeps_of(id), -1);
    wait_until([&] { return !is_asleep_in_kernel(id); });
    EXPECT_TRUE(is_asleep_in_kernel(sleeper.id()));
    EXPECT_FALSE(is_asleep_lightly(sleeper.id()));
  }
  EXPECT_EQ(doing_of(sleeper.id()), Doing::sleeps);
  stop = true;
  thread.join();
}

TEST(OtherThread, OneThatWaitsInTheKernelUsesNone) {
  Sleeper sleeper;
  wait_until([&] {  // the kernel may still be at it
    const std::int64_t before = cpu_ns_of(sleeper.id());
    return cpu_ns_of(sleeper.id()) == before;
  });
  EXPECT_TRUE(is_asleep_in_kernel(sleeper.id()));
}

TEST(OtherThread, OneThatWaitsForAnotherThreadSleepsLightly) {
  Sleeper sleeper;
  EXPECT_TRUE(is_asleep_lightly(sleeper.id()));
}

#if defined(__x86_64__) && !defined(MAGPIE_TSAN) && \
    !defined(MAGPIE_ASAN)  // they do not know a child on its parent's stack
// The parent of a child made by vfork() waits in the kernel as for a page: no signal ends it.
TEST(OtherThread, OneThatTheKernelAloneCanWakeDoesNotSleepLightly) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  std::atomic<pid_t> id{0};
  std::thread thread([&] {
    id = gettid();
    const pid_t child = vfork();
    if (child == 0) {
      char byte;
      (void)!read(ends[0], &byte, 1);
      _exit(0);
    }
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
  });
  wait_until([&] { return id != 0 && is_asleep_in_kernel(id); });
  EXPECT_FALSE(is_asleep_lightly(id));
  EXPECT_EQ(write(ends[1], "x", 1), 1);
  thread.join();
  for (const int end : ends) close(end);
}
#endif

TEST(OtherThread, OneThatWaitsForALockTellsWhichOne) {
#ifdef __aarch64__
  GTEST_SKIP() << "an emulator shows calls of its own";
#endif
  Sleeper reads;
  EXPECT_EQ(lock_waited_for(reads.id()), 0u);
  std::mutex lock;
  std::atomic<pid_t> id{0};
  std::unique_lock hold(lock);
  std::thread waits([&] {
    id = gettid();
    std::scoped_lock mine(lock);
  });
  wait_until([&] { return id != 0 && is_asleep_lightly(id); });
  EXPECT_EQ(lock_waited_for(id), reinterpret_cast<std::uintptr_t>(lock.native_handle()));
  hold.unlock();
  waits.join();
  EXPECT_EQ(lock_waited_for(id), 0u);
}

TEST(OtherThread, OneThatWaitsForAConditionWaitsForNoLock) {
  std::mutex lock;
  std::condition_variable changed;
  bool over = false;
  std::atomic<pid_t> id{0};
  std::thread waits([&] {
    std::unique_lock hold(lock);
    id = gettid();
    changed.wait(hold, [&] { return over; });
  });
  wait_until([&] { return id != 0 && is_asleep_lightly(id); });
  EXPECT_EQ(lock_waited_for(id), 0u);
  {
    std::scoped_lock hold(lock);
    over = true;
  }
  changed.notify_one();
  waits.join();
}

TEST(OtherThread, OneThatHasEndedHasUsedNothing) {
  Sleeper sleeper;
  const pid_t id = sleeper.id();
  sleeper.end();
  wait_until([id] { return cpu_ns_of(id) == 0; });
}

}  // namespace
}  // namespace magpie::base
