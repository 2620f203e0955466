#include "sched/taking/stretch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <thread>

#include "base/other_thread.h"

namespace magpie::sched {
namespace {

void sleep_a_moment() {
  constexpr timespec kMoment{.tv_sec = 0, .tv_nsec = 1'000'000};
  nanosleep(&kMoment, nullptr);
}

TEST(Stretch, BeginsAnewWhenTheThreadHasSlept) {
  Stretch stretch;
  sleep_a_moment();
  EXPECT_EQ(stretch.measure_ns(gettid(), 1'000), 0);
  sleep_a_moment();
  EXPECT_EQ(stretch.measure_ns(gettid(), 5'000), 0);
}

// A thread that sleeps in read(), and once more for each byte.
class Sleeper {
 public:
  Sleeper() {
    EXPECT_EQ(pipe(ends_), 0);
    thread_ = std::thread([this] {
      tid_ = gettid();
      char byte;
      while (read(ends_[0], &byte, 1) == 1) {
      }
    });
    while (tid_ == 0) std::this_thread::yield();
    wait_until_it_sleeps();
  }
  ~Sleeper() {
    close(ends_[1]);
    thread_.join();
    close(ends_[0]);
  }

  pid_t tid() const { return tid_; }

  void sleep_once_more() {
    std::int64_t before = base::sleeps_of(tid_);
    EXPECT_EQ(write(ends_[1], "x", 1), 1);
    while (base::sleeps_of(tid_) == before) std::this_thread::yield();
    wait_until_it_sleeps();
  }

 private:
  void wait_until_it_sleeps() const {
    while (base::doing_of(tid_) != base::Doing::sleeps) std::this_thread::yield();
  }

  int ends_[2];
  std::atomic<pid_t> tid_{0};
  std::thread thread_;
};

// The kernel's file about the thread is not read again: many threads may sleep, and each is looked
// at again and again.
TEST(Stretch, OfAThreadThatHasNotRunSinceTheLastLookIsWhatItWas) {
  Sleeper other;
  Stretch stretch;
  EXPECT_EQ(stretch.measure_ns(other.tid(), 1'000), 0);
  EXPECT_EQ(stretch.measure_ns(other.tid(), 4'000), 3'000);
  other.sleep_once_more();
  EXPECT_EQ(stretch.measure_ns(other.tid(), 4'000), 3'000);  // it has slept, but was not asked
  EXPECT_EQ(stretch.measure_ns(other.tid(), 5'000), 0);
}

TEST(Stretch, OfAThreadOfWhichTheKernelTellsNothingCountsWhileItRuns) {
  constexpr pid_t kNobody = 0;  // there is no such file
  Stretch stretch;
  EXPECT_EQ(stretch.measure_ns(kNobody, 1'000), 0);
  EXPECT_EQ(stretch.measure_ns(kNobody, 4'000), 3'000);
  EXPECT_EQ(stretch.measure_ns(kNobody, 4'000), 0);  // it may be asleep
}

}  // namespace
}  // namespace magpie::sched
