#include "sched/dump/fault_guard.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>

#include <magpie/runtime.h>

#include "support/blocked_signals.h"

namespace magpie::sched {
namespace {

[[MAGPIE_READS_RACILY]] void read_what_is_not_there(void*) {
  (void)*reinterpret_cast<const volatile int*>(std::uintptr_t{16});
}

// A sanitizer's handler stands before ours, and blocks signals while ours runs.
TEST(FaultGuard, SurvivesOneFaultAfterAnotherAndLeavesNoSignalBlocked) {
  run([] {
    FaultHandling handling;
    for (int i = 0; i < 3; ++i) {
      ASSERT_FALSE(survives(read_what_is_not_there, nullptr));
      ASSERT_FALSE(support::is_blocked(SIGSEGV));
      ASSERT_FALSE(support::is_blocked(SIGURG)) << "its thread cannot be preempted any more";
    }
  });
}

}  // namespace
}  // namespace magpie::sched
