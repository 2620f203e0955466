// Nothing allocates, frees or takes a foreign lock inside the runtime: the check that all test
// programs carry says so (tests/support/inside_check.cc).
#include "sched/run/inside.h"

#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>

#include "base/sanitizer.h"
#include "sched/entry.h"
#include "sched/park.h"
#include "support/rt_test.h"

namespace magpie::sched {
namespace {

void* volatile kept;  // so that compilers leave the allocations in

void allocate() { kept = std::malloc(100); }

class InsideDeathTest : public testing::Test {
 protected:
  InsideDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Runs f in a goroutine, inside the runtime.
template <class F>
void run_inside(F f) {
  run(Options{.procs = 1}, [&] {
    Entry entry;
    f();
  });
}

TEST_F(InsideDeathTest, AnAllocationInsideEndsTheProgram) {
  EXPECT_DEATH(run_inside(allocate), "magpie: allocation inside the runtime");
}

TEST_F(InsideDeathTest, AnAllocationByOperatorNewInsideEndsTheProgram) {
  EXPECT_DEATH(run_inside([] { kept = ::operator new(100); }),
               "magpie: allocation inside the runtime");
}

TEST_F(InsideDeathTest, AnAlignedAllocationInsideEndsTheProgram) {
  EXPECT_DEATH(run_inside([] { kept = std::aligned_alloc(64, 128); }),
               "magpie: allocation inside the runtime");
}

TEST_F(InsideDeathTest, AFreeInsideEndsTheProgram) {
  kept = std::malloc(100);
  EXPECT_DEATH(run_inside([] { std::free(kept); }), "magpie: free inside the runtime");
  std::free(kept);
}

TEST_F(InsideDeathTest, AnExceptionInsideEndsTheProgram) {
  EXPECT_DEATH(run_inside([] {
                 try {
                   throw 1;
                 } catch (int) {
                 }
               }),
               "inside the runtime");
}

#if !defined(MAGPIE_TSAN)
TEST_F(InsideDeathTest, AMutexInsideEndsTheProgram) {
  EXPECT_DEATH(run_inside([] {
                 std::mutex mutex;
                 std::lock_guard hold(mutex);
               }),
               "magpie: pthread_mutex_lock inside the runtime");
}
#endif

TEST_F(InsideDeathTest, StdioInsideEndsTheProgram) {
  EXPECT_DEATH(run_inside([] { std::fflush(stdout); }), "magpie: fflush inside the runtime");
}

TEST_F(InsideDeathTest, TheFirstUseOfAStaticLocalInsideEndsTheProgram) {
  EXPECT_DEATH(run_inside([] {
                 static void* const made = kept;
                 kept = made;
               }),
               "magpie: static local's lock inside the runtime");
}

TEST_F(InsideDeathTest, AnAllocationInACommitStepEndsTheProgram) {
  EXPECT_DEATH(run_inside([] {
                 park(
                     WaitReason::join,
                     [](M*, G*, void*) {
                       allocate();
                       return false;
                     },
                     nullptr);
               }),
               "magpie: allocation inside the runtime");
}

RT_TEST(Inside, GoroutinesAreOutsideBetweenTheirCalls) {
  EXPECT_FALSE(is_inside_with_p());
  allocate();
  std::free(kept);
  bool inside = false;
  {
    Entry entry;
    inside = is_inside_with_p();
  }
  EXPECT_TRUE(inside);
  EXPECT_FALSE(is_inside_with_p());
}

TEST(Inside, ThreadsThatAreNoneOfTheRuntimeAreOutside) {
  EXPECT_FALSE(is_inside_with_p());
  run(Options{.procs = 2}, [] {});
  EXPECT_FALSE(is_inside_with_p());
}

}  // namespace
}  // namespace magpie::sched
