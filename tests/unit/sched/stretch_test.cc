#include "sched/taking/stretch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <thread>

namespace magpie::sched {
namespace {

void sleep_a_moment() {
  constexpr timespec kMoment{.tv_sec = 0, .tv_nsec = 1'000'000};
  nanosleep(&kMoment, nullptr);
}

TEST(Stretch, BeginsAnewWhenTheThreadHasSlept) {
  Stretch stretch;
  sleep_a_moment();
  EXPECT_EQ(stretch.length_ns(gettid(), 1'000), 0);
  sleep_a_moment();
  EXPECT_EQ(stretch.length_ns(gettid(), 5'000), 0);
}

// The kernel's file about the thread is not read again: many threads may sleep, and each is looked
// at again and again.
TEST(Stretch, OfAThreadThatHasNotRunSinceTheLastLookIsWhatItWas) {
  Stretch stretch;
  EXPECT_EQ(stretch.length_ns(gettid(), 1'000), 0);
  sleep_a_moment();  // as it says that it has not run, nobody looks
  EXPECT_EQ(stretch.length_ns(gettid(), 1'000), 0);
  pid_t nobody = 0;  // there is no such file, which counts as no sleeps
  Stretch of_nobody;
  EXPECT_EQ(of_nobody.length_ns(nobody, 1'000), 0);
  EXPECT_EQ(of_nobody.length_ns(nobody, 4'000), 3'000);
  EXPECT_EQ(of_nobody.length_ns(gettid(), 4'000), 3'000);  // it has slept, but was not asked
}

}  // namespace
}  // namespace magpie::sched
