// The global queue is looked at every so many turns, whatever else wakes up.

#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/sanitizer.h"
#include "sched/entry.h"
#include "sched/run/runtime.h"
#include "support/rt_test.h"

namespace magpie::sched {
namespace {

using namespace std::chrono_literals;

// Starts itself again until told otherwise: there are always goroutines in the ring that have not
// begun.
struct Chain {
  std::atomic<bool>& stop;
  std::atomic<int>& alive;

  void operator()() const {
    if (stop) {
      --alive;
    } else {
      go(*this);
    }
  }
};

std::int32_t turns_until_the_look() {
  Entry entry;
  return entry.m()->p->ticks_to_look;
}

// Sanitizers have nothing to add here, and are slow.
#if defined(MAGPIE_TSAN) || defined(MAGPIE_ASAN)
constexpr int kRounds = 1'000;
#else
constexpr int kRounds = 5'000;
#endif

TEST(GlobalLook, ComesInTimeThoughGoroutinesThatTimersWakeOvertakeThoseThatHaveNotBegun) {
  run(Options{.procs = 1}, [] {
    std::atomic<bool> stop{false};
    std::atomic<int> alive{5};
    for (int i = 0; i < 5; ++i) go(Chain{stop, alive});
    std::int32_t most = 0;
    // Now and then it is woken just when the global queue was to be looked at.
    for (int i = 0; i < kRounds && most <= 61; ++i) {
      sleep_for(20us);
      most = std::max(most, turns_until_the_look());
    }
    EXPECT_LE(most, 61);
    stop = true;
    EXPECT_TRUE(support::eventually([&] { return alive == 0; }));
  });
}

}  // namespace
}  // namespace magpie::sched
