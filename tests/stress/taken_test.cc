// taken_test.cc: Ps are taken from goroutines that come back into the runtime at just that moment.

#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;

// Runs for about as long as sysmon lets one run while others wait.
void compute_for(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// A P that got lost would leave everybody asleep, and the test would time out.
void keep_coming_back(int procs, std::chrono::milliseconds how_long) {
  run(Options{.procs = procs, .time_slice = 1ms}, [&] {
    const auto end = std::chrono::steady_clock::now() + how_long;
    std::atomic<long> turns{0};
    WaitGroup group;
    for (int i = 0; i < 6; ++i) {
      group.go([&, i] {
        for (int k = 0; k == 0 || std::chrono::steady_clock::now() < end; ++k) {
          compute_for(std::chrono::microseconds(500 + (k * 37 + i * 101) % 600));
          if (k % 3 == 0) blocking([] { usleep(20); });
          yield();
          ++turns;
        }
      });
    }
    group.go([&] {
      while (std::chrono::steady_clock::now() < end) sleep_for(100us);
    });
    group.wait();
    EXPECT_GT(turns.load(), 0);
  });
}

TEST(StressTaken, AtOneProc) {
  keep_coming_back(1, std::chrono::milliseconds(support::scaled(2000)));
}
TEST(StressTaken, AtTwoProcs) {
  keep_coming_back(2, std::chrono::milliseconds(support::scaled(2000)));
}

}  // namespace
}  // namespace magpie
