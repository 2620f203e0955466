// cpu_slices_test.cc: how long the kernel lets a thread run at a time.

#include "base/cpu_slices.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace magpie::base {
namespace {

TEST(CpuSlices, AskingForThemLeavesThePolicyOfTheThreadAsItIs) {
  for (int policy : {SCHED_OTHER, SCHED_BATCH, SCHED_IDLE}) {
    std::jthread([policy] {
      const sched_param none{};
      ASSERT_EQ(sched_setscheduler(0, policy, &none), 0);
      ask_for_slices(100'000);
      EXPECT_EQ(sched_getscheduler(0), policy);
      ask_for_slices(0);
      EXPECT_EQ(sched_getscheduler(0), policy);
    });
  }
}

}  // namespace
}  // namespace magpie::base
