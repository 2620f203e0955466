// rt_test.h: tests that run inside the runtime.
//
//   RT_TEST(WaitGroup, WaitReturnsOnceEveryGoroutineIsDone) { ... }
//
// The body is goroutine 1 of a fresh runtime, once each at 1, 2 and 8 procs. After it returned,
// every goroutine that it started has to end; one still alive after a minute fails the test.
//
// ASSERT_* leaves the function it stands in: in a lambda given to go() that is the lambda.
// SCOPED_TRACE belongs to a thread, so a goroutine may not hold one while it blocks or yields.
#pragma once

#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <chrono>
#include <ctime>
#include <thread>

namespace magpie::support {

inline constexpr int kProcsOfEachTest[] = {1, 2, 8};
inline constexpr std::chrono::seconds kGenerousLimit{60};

inline std::chrono::nanoseconds cpu_time() {
  return std::chrono::nanoseconds(std::clock() * (1'000'000'000 / CLOCKS_PER_SEC));
}

// Waits until cond() is true and returns whether it became true within the limit, which is longer
// while the machine gives this process less than a twentieth of a CPU. In between it yields: in a
// goroutine to other goroutines, in a plain thread to other threads.
template <class Condition>
[[nodiscard]] bool eventually(Condition cond, std::chrono::nanoseconds limit = kGenerousLimit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  const auto enough_cpu = cpu_time() + limit / 20;
  while (!cond()) {
    if (std::chrono::steady_clock::now() >= deadline && cpu_time() >= enough_cpu) return cond();
    if (goroutine_id() != 0) {
      magpie::yield();
    } else {
      std::this_thread::yield();
    }
  }
  return true;
}

// Waits until n goroutines wait.
[[nodiscard]] inline bool waiting_is(std::size_t n) {
  return eventually([n] { return stats().waiting == n; });
}

// What RT_TEST expands to. Stops at the first number of procs with a fatal failure.
inline void run_at_each_procs(void (*body)()) {
  const auto* result = ::testing::UnitTest::GetInstance()->current_test_info()->result();
  for (const int n : kProcsOfEachTest) {
    SCOPED_TRACE(::testing::Message() << "procs = " << n);
    const int parts_before = result->total_part_count();

    magpie::run(Options{.procs = n}, [&] {
      body();
      // A body that gave up halfway may leave goroutines blocked for good: do not wait for those.
      if (::testing::Test::HasFailure()) return;
      EXPECT_TRUE(eventually([] { return num_goroutines() == 1; }))
          << "procs = " << n << ": " << num_goroutines() - 1 << " goroutines are still alive";
    });

    // Failures seen by other threads do not carry the trace above, so say it once more.
    if (result->total_part_count() > parts_before && ::testing::Test::HasFailure()) {
      ADD_FAILURE() << "the failures above happened with procs = " << n;
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace magpie::support

#define RT_TEST(Suite, Name)                                                                \
  static void rt_body_of_##Suite##_##Name();                                                \
  TEST(Suite, Name) { ::magpie::support::run_at_each_procs(&rt_body_of_##Suite##_##Name); } \
  static void rt_body_of_##Suite##_##Name()
