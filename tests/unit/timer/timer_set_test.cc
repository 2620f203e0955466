// TimerSet against a plain sorted container, and where its parts meet.
#include "timer/timer_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "support/let_signals_in.h"
#include "support/os_faults.h"
#include "support/test_length.h"

namespace magpie::timer {
namespace {

void* do_nothing(Timer& timer) {
  timer.finished();
  return nullptr;
}

struct Record : Timer {
  Record() : Timer(do_nothing) {}
};

std::vector<std::int64_t> take_all(TimerSet& set, std::int64_t now) {
  std::vector<std::int64_t> times;
  Timer* due[7];
  while (std::size_t count = set.take_due(now, due)) {
    for (std::size_t i = 0; i < count; ++i) {
      times.push_back(due[i]->when_ns);
      due[i]->fire(*due[i]);
    }
  }
  return times;
}

TEST(TimerSet, IsEmptyAtFirstAndItsEarliestTimeNeverComes) {
  TimerSet set;
  EXPECT_EQ(set.earliest_ns(), kNever);
  EXPECT_EQ(set.size(), 0U);
  EXPECT_TRUE(take_all(set, kNever).empty());
}

TEST(TimerSet, TellsWhetherANewTimerIsTheEarliest) {
  TimerSet set;
  Record timers[4];
  EXPECT_TRUE(set.insert(timers[0], 50));
  EXPECT_FALSE(set.insert(timers[1], 60));
  EXPECT_FALSE(set.insert(timers[2], 50));
  EXPECT_TRUE(set.insert(timers[3], 49));
  EXPECT_EQ(set.earliest_ns(), 49);
}

TEST(TimerSet, GivesOnlyWhatIsDueInOrder) {
  TimerSet set;
  Record timers[5];
  std::int64_t times[] = {30, 10, 50, 20, 40};
  for (int i = 0; i < 5; ++i) set.insert(timers[i], times[i]);
  EXPECT_EQ(take_all(set, 30), (std::vector<std::int64_t>{10, 20, 30}));
  EXPECT_EQ(set.earliest_ns(), 40);
  EXPECT_EQ(set.size(), 2U);
}

TEST(TimerSet, TimersOfTheSameTimeComeInTheOrderOfTheirInsertion) {
  TimerSet set;
  std::vector<Record> timers(100);
  for (Record& timer : timers) set.insert(timer, 7);
  std::vector<Timer*> due(100);
  ASSERT_EQ(set.take_due(7, due), 100U);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(due[i], &timers[i]);
}

TEST(TimerSet, RemovingTellsWhereTheTimerWas) {
  TimerSet set;
  Record timer;
  EXPECT_EQ(TimerSet::remove(timer), TimerSet::Removal::idle);
  set.insert(timer, 1);
  EXPECT_EQ(TimerSet::remove(timer), TimerSet::Removal::removed);
  EXPECT_EQ(TimerSet::remove(timer), TimerSet::Removal::idle);
  set.insert(timer, 1);
  Timer* due[1];
  ASSERT_EQ(set.take_due(1, due), 1U);
  EXPECT_EQ(TimerSet::remove(timer), TimerSet::Removal::firing);
  timer.fire(timer);
  EXPECT_EQ(TimerSet::remove(timer), TimerSet::Removal::idle);
}

TEST(TimerSet, ATimerMayBeInsertedAgainWhileItFires) {
  TimerSet set;
  Record timer;
  set.insert(timer, 1);
  Timer* due[1];
  ASSERT_EQ(set.take_due(1, due), 1U);
  set.insert(timer, 2);
  EXPECT_EQ(TimerSet::remove(timer), TimerSet::Removal::removed);
}

// Everything the set can do, at random, against a sorted vector.
void compare_with_plain(std::int64_t spread, std::int64_t drift, std::uint32_t seed) {
  std::mt19937 random(seed);
  TimerSet set, other;
  std::vector<Record> timers(1000);
  std::vector<bool> in(timers.size());
  std::int64_t now = 0;
  for (int step = 0; step < 20'000; ++step) {
    std::size_t i = random() % timers.size();
    switch (random() % 8) {
      default:
        if (!in[i]) set.insert(timers[i], now + static_cast<std::int64_t>(random()) % spread);
        in[i] = true;
        break;
      case 5:
      case 6:
        EXPECT_EQ(TimerSet::remove(timers[i]),
                  in[i] ? TimerSet::Removal::removed : TimerSet::Removal::idle);
        in[i] = false;
        break;
      case 7:
        now += static_cast<std::int64_t>(random()) % drift;
        std::vector<std::int64_t> expected;
        for (std::size_t k = 0; k < timers.size(); ++k) {
          if (!in[k] || timers[k].when_ns > now) continue;
          expected.push_back(timers[k].when_ns);
          in[k] = false;
        }
        std::sort(expected.begin(), expected.end());
        ASSERT_EQ(take_all(set, now), expected);
        if (random() % 64 == 0) {
          set.move_all_to(other);
          EXPECT_EQ(set.size(), 0U);
          EXPECT_EQ(set.earliest_ns(), kNever);
          other.move_all_to(set);
        }
        break;
    }
    std::int64_t earliest = kNever;
    std::size_t count = 0;
    if (step % 16 == 0) {
      for (std::size_t k = 0; k < timers.size(); ++k) {
        if (!in[k]) continue;
        earliest = std::min(earliest, timers[k].when_ns);
        ++count;
      }
      ASSERT_EQ(set.earliest_ns(), earliest);
      ASSERT_EQ(set.size(), count);
    }
  }
  while (set.take_any() != nullptr) {
  }
}

TEST(TimerSet, DoesWhatASortedContainerDoes) {
  auto seed = static_cast<std::uint32_t>(support::printed_seed());
  compare_with_plain(10, 5, seed);           // nearly all in order
  compare_with_plain(1'000'000, 10, seed);   // nearly none
  compare_with_plain(100'000, 3'000, seed);  // some
}

TEST(TimerSet, WithoutMemoryToGrowItIsOnlySlower) {
  support::MapFaults no_memory;
  compare_with_plain(1000, 300, static_cast<std::uint32_t>(support::printed_seed()));
  EXPECT_GT(support::MapFaults::refusals(), 0);
}

void move_between_full_sets(std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Record> timers(2'000);
  TimerSet from, to;
  std::vector<std::int64_t> expected;
  for (std::size_t i = 0; i < timers.size(); ++i) {
    auto when = static_cast<std::int64_t>(random() % 2 == 0 ? i : random() % timers.size());
    (random() % 3 == 0 ? to : from).insert(timers[i], when);
  }
  for (Record& timer : timers) {
    if (random() % 3 == 0) {
      TimerSet::remove(timer);
    } else {
      expected.push_back(timer.when_ns);
    }
  }
  from.move_all_to(to);
  EXPECT_EQ(from.size(), 0U);
  EXPECT_EQ(from.earliest_ns(), kNever);
  EXPECT_EQ(to.size(), expected.size());
  // Each knows its new place: half of them are taken out by it.
  std::vector<std::int64_t> left;
  for (Record& timer : timers) {
    if (timer.word.view().set == nullptr) continue;
    EXPECT_EQ(timer.word.view().set, &to);
    if (random() % 2 == 0) {
      EXPECT_EQ(TimerSet::remove(timer), TimerSet::Removal::removed);
    } else {
      left.push_back(timer.when_ns);
    }
  }
  std::sort(left.begin(), left.end());
  EXPECT_EQ(to.earliest_ns(), left.front());
  EXPECT_EQ(take_all(to, kNever), left);
}

TEST(TimerSet, MovingToASetThatHoldsOthersKeepsAllOfBoth) {
  auto seed = static_cast<std::uint32_t>(support::printed_seed());
  for (std::uint32_t round = 0; round < 50; ++round) move_between_full_sets(seed + round);
}

TEST(TimerSet, WithoutMemoryMovingKeepsAllOfBothToo) {
  support::MapFaults no_memory;
  move_between_full_sets(static_cast<std::uint32_t>(support::printed_seed()));
}

// The world stands still meanwhile.
TEST(TimerSet, MovingManyTakesAFractionOfTakingThemOut) {
  std::mt19937 random(static_cast<std::uint32_t>(support::printed_seed()));
  auto count = static_cast<std::size_t>(support::scaled(200'000));
  auto timers = std::make_unique<Record[]>(count);
  TimerSet from, to;
  for (std::size_t i = 0; i < count; ++i) from.insert(timers[i], random() % 1'000'000'000);
  const auto begin = support::cpu_time_of_this_thread();
  from.move_all_to(to);
  const auto moved = support::cpu_time_of_this_thread();
  EXPECT_EQ(take_all(to, kNever).size(), count);
  EXPECT_LT(3 * (moved - begin), support::cpu_time_of_this_thread() - moved);
}

TEST(TimerSet, HoldsAMillionTimersOfRandomTimes) {
  std::mt19937 random(static_cast<std::uint32_t>(support::printed_seed()));
  auto count = static_cast<std::size_t>(support::scaled(1'000'000));
  auto timers = std::make_unique<Record[]>(count);
  TimerSet set;
  for (std::size_t i = 0; i < count; ++i) set.insert(timers[i], random() % 1'000'000'000);
  EXPECT_EQ(set.size(), count);
  for (std::size_t i = 0; i < count; i += 2) TimerSet::remove(timers[i]);
  auto times = take_all(set, kNever - 1);
  EXPECT_EQ(times.size(), count / 2);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
}

// One removes and inserts again, others fire: each insertion ends in exactly one way.
TEST(TimerSet, EachInsertionIsEitherRemovedOrFiredOnce) {
  struct Counting : Timer {
    Counting() : Timer(count) {}
    static void* count(Timer& timer) {
      ++static_cast<Counting&>(timer).fired;
      timer.finished();
      return nullptr;
    }
    int fired = 0;
  };
  TimerSet set;
  std::atomic<bool> stop{false};
  auto fire = [&] {
    Timer* due[4];
    while (!stop) {
      std::size_t count = set.take_due(100, due);
      for (std::size_t i = 0; i < count; ++i) due[i]->fire(*due[i]);
    }
  };
  std::thread firers[] = {std::thread(fire), std::thread(fire)};
  int rounds = support::scaled(200'000);
  for (int i = 0; i < rounds; ++i) {
    Counting timer;  // on this stack: nobody may touch it after the round
    set.insert(timer, i % 100);
    TimerSet::Removal how = TimerSet::remove(timer);
    while (timer.word.view().firing) std::this_thread::yield();
    ASSERT_EQ(timer.fired, how == TimerSet::Removal::removed ? 0 : 1);
  }
  stop = true;
  for (std::thread& thread : firers) thread.join();
}

}  // namespace
}  // namespace magpie::timer
