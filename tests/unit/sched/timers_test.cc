// Timers in the scheduler: an owner takes its timer back while others fire it, and which timers a
// search fires.
#include "sched/timers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/cpu.h"
#include "sched/entry.h"
#include "sched/policy.h"
#include "sched/rest/fire.h"
#include "sched/run/runtime.h"
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

// ---- searches for timers of other Ps

struct Counted : Timer {
  explicit Counted(int& counter) : Timer(count), fired(counter) {}
  static void* count(Timer& timer) {
    ++static_cast<Counted&>(timer).fired;
    timer.finished();
    return nullptr;
  }
  int& fired;
};

// Holds all Ps, so that no other M fires what the test puts into their sets. The test is inside the
// runtime meanwhile, and may not allocate but for those sets.
class StoppedWorld {
 public:
  StoppedWorld() {
    while (!runtime->world.try_lock()) yield();
    entry_.emplace();
    runtime->world.stop(m());
  }
  ~StoppedWorld() {
    runtime->world.start(m());
    runtime->world.unlock();
  }
  M* m() { return entry_->m(); }
  void arm(std::size_t p, Timer& timer) {
    runtime->ps.in_use()[p]->timers.insert(timer, base::now_ns());
  }

 private:
  std::optional<Entry> entry_;
};

struct FiredTimers {
  explicit FiredTimers(int count) {
    for (int i = 0; i < count; ++i) timers.emplace_back(fired);
  }
  int fired = 0;
  std::deque<Counted> timers;
};

TEST(TimersOfOthers, ASearchLooksAtAFewPsAndTheNextAtTheNextOnes) {
  constexpr int kProcs = 4 * policy::kTimerLooks;
  run(Options{.procs = kProcs}, [] {
    FiredTimers all(kProcs);
    int after[4] = {};
    bool sees_more = true;
    {
      StoppedWorld world;
      for (std::size_t p = 0; p < kProcs; ++p) world.arm(p, all.timers[p]);
      for (int& fired : after) {
        EXPECT_EQ(fire_others(world.m()), nullptr);
        fired = all.fired;
      }
      sees_more = sees_due_timer(world.m());
    }
    for (int search = 0; search < 4; ++search)
      EXPECT_EQ(after[search], (search + 1) * static_cast<int>(policy::kTimerLooks));
    EXPECT_FALSE(sees_more);
  });
}

TEST(TimersOfOthers, ASearchBeginsWhereTheLookAtAllPsSawADueTimer) {
  run(Options{.procs = 100}, [] {
    constexpr std::size_t kPs[] = {3, 99, 50, 51, 0, 77};
    FiredTimers all(6);
    int seen = 0;
    {
      StoppedWorld world;
      for (std::size_t i = 0; i < 6; ++i) {
        world.arm(kPs[i], all.timers[i]);
        if (sees_due_timer(world.m())) ++seen;
        EXPECT_EQ(fire_others(world.m()), nullptr);
        if (all.fired != static_cast<int>(i) + 1) break;
      }
    }
    EXPECT_EQ(seen, 6);
    EXPECT_EQ(all.fired, 6);
  });
}

// More Ps than a search looks at, and each goroutine arms its timer on the P where it is.
TEST(TimersOfOthers, SleepersOnManyPsWakeUp) {
  run(Options{.procs = 100}, [] {
    WaitGroup all;
    for (int i = 0; i < 400; ++i) {
      all.go([] {
        for (int k = 0; k < 5; ++k) sleep_for(std::chrono::microseconds(200));
      });
    }
    all.wait();
  });
}

}  // namespace
}  // namespace magpie::sched
