// Timers in the scheduler: an owner takes its timer back while others fire it.
#include "sched/timers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/clock.h"
#include "base/cpu.h"
#include "support/plain_thread.h"
#include "support/rt_test.h"

namespace magpie::sched {
namespace {

constexpr std::int64_t kHourNs = 3'600'000'000'000;
constexpr std::int64_t kMomentNs = 20'000;

// Puts itself in again when it fires, as a deadline's does, once somebody is about to take it back.
struct FiresAgain : Timer {
  FiresAgain() : Timer(fire_again) {}
  static void* fire_again(Timer& timer) {
    auto& self = static_cast<FiresAgain&>(timer);
    self.fires.store(true);
    while (!self.is_taken_back.load()) base::cpu_relax();
    // The other sees that it fires, most likely: nothing depends on it but what is tried.
    for (std::int64_t end = base::now_ns() + kMomentNs; base::now_ns() < end;) base::cpu_relax();
    (void)arm(timer, base::now_ns() + kHourNs);
    return nullptr;
  }
  std::atomic<bool> fires{false};
  std::atomic<bool> is_taken_back{false};
};

RT_TEST(Timers, ATimerThatPutsItselfInAgainWhileItIsTakenBackIsOutOfAllSetsAfterwards) {
  for (int i = 0; i < 100; ++i) {
    FiresAgain timer;
    support::PlainThread owner([&] {
      while (!timer.fires.load()) std::this_thread::yield();
      timer.is_taken_back.store(true);
      disarm_and_wait(timer);
      EXPECT_TRUE(timer.word.is_idle());
    });
    ASSERT_TRUE(arm(timer, base::now_ns()));
    owner.join();
    disarm_and_wait(timer);
  }
}

}  // namespace
}  // namespace magpie::sched
