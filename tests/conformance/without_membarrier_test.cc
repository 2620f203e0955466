// without_membarrier_test.cc: the same guarantees where the kernel has no membarrier, or a sandbox
// forbids it: with real fences wake-ups are not lost, loops are stopped, and calls that block lose
// their P.
//
// What is forbidden stays so for the rest of the process. So these are in the file that comes last.

#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>

#include "base/fence.h"
#include "base/sanitizer.h"
#include "support/let_signals_in.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::eventually;
using support::let_signals_in;

// Runs the body as RT_TEST does, without membarrier.
class WithoutMembarrier : public testing::Test {
 protected:
  static void SetUpTestSuite() { base::forbid_membarrier(); }

  static void at_each_procs(void (*body)()) {
    support::run_at_each_procs(body);
    EXPECT_FALSE(base::detail::fences_granted.light_is_free());
  }
};

TEST_F(WithoutMembarrier, WakeUpsAndTheNextSlotWork) {
  at_each_procs([] {
    for (int round = 0; round < support::scaled(800); ++round) {
      WaitGroup all;
      for (int i = 0; i < 50; ++i) all.go([] { spawn([] { yield(); }).join(); });
      all.wait();
    }
  });
}

TEST_F(WithoutMembarrier, LoopsThatHoldEveryPAreStopped) {
  at_each_procs([] {
    std::atomic<bool> stop{false};
    std::atomic<int> looping{0};
    WaitGroup loops;
    for (int i = 0; i < 2 * procs(); ++i) {
      loops.go([&] {
        ++looping;
        while (!stop.load(std::memory_order_relaxed)) let_signals_in();
      });
    }
    // Nobody yields but this one: all of them have begun, and a timer's sleeper goes on, by
    // preemption alone.
    EXPECT_TRUE(eventually([&] { return looping.load() == 2 * procs(); }));
    for (int i = 0; i < 5; ++i) sleep_for(1ms);
    EXPECT_GT(stats().total.preemptions, 0U);
    stop.store(true);
    loops.wait();
  });
}

TEST_F(WithoutMembarrier, CallsThatBlockLoseTheirPDeclaredOrNot) {
  at_each_procs([] {
    for (const bool declared : {true, false}) {
      std::array<int, 2> ends{};
      ASSERT_EQ(pipe(ends.data()), 0);
      auto block_until_written = [&] {
        char byte;
        EXPECT_EQ(::read(ends[0], &byte, 1), 1);
      };
      WaitGroup group;
      std::atomic<int> begun{0};
      const int blocked = 2 * procs();
      for (int i = 0; i < blocked; ++i) {
        group.go([&, declared] {
          ++begun;
          if (declared) {
            blocking(block_until_written);
          } else {
            block_until_written();
          }
        });
      }
      // Twice as many as there are Ps: they can only all begin if Ps are taken from those who sit
      // in read().
      EXPECT_TRUE(eventually([&] { return begun.load() == blocked; }));
      for (int i = 0; i < blocked; ++i) EXPECT_EQ(::write(ends[1], "x", 1), 1);
      group.wait();
      close(ends[0]);
      close(ends[1]);
    }
    EXPECT_GT(stats().total.handoffs, 0U);
  });
}

// [grip] The taker asks while the M enters: at most one of them may have the P. One that was lost,
// or held twice, leaves somebody asleep, and the test times out.
TEST_F(WithoutMembarrier, PsAreTakenFromThoseWhoComeBackAtThatMoment) {
  for (const int procs : {1, 2, 4}) {
    run(Options{.procs = procs, .time_slice = 1ms}, [] {
      const auto begun = std::chrono::steady_clock::now();
      auto is_over = [begun] {
        const auto passed = std::chrono::steady_clock::now() - begun;
        return passed > 30s || (passed > 300ms && stats().total.handoffs > 0);
      };
      auto compute_for = [](std::chrono::microseconds time) {
        const auto until = std::chrono::steady_clock::now() + time;
        while (std::chrono::steady_clock::now() < until) let_signals_in();
      };
      WaitGroup group;
      for (int i = 0; i < 6; ++i) {
        group.go([&, i] {
          for (int k = 0; !is_over(); ++k) {
            // About as long as sysmon lets one run while others wait.
            compute_for(std::chrono::microseconds(500 + (k * 37 + i * 101) % 600));
            if (k % 3 == 0) blocking([] { usleep(20); });
            yield();
          }
        });
      }
      group.go([&] {
        while (!is_over()) sleep_for(100us);
      });
      group.wait();
      EXPECT_GT(stats().total.handoffs, 0U);
    });
  }
}

}  // namespace
}  // namespace magpie
