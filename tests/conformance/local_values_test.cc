// local_values_test.cc: values of a Local belong to the goroutine and die with it.
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "support/overtake.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using support::be_overtaken;
using support::kMany;

RT_TEST(LocalValues, EachGoroutineHasItsOwnFromTheInitialValueOn) {
  Local<int> number(5);
  std::atomic<int> wrong{0};
  number.get() = 1;
  WaitGroup all;
  for (int i = 0; i < kMany; ++i) {
    all.go([&, i] {
      if (*number != 5) ++wrong;
      *number = i;
      be_overtaken();
      if (*number != i) ++wrong;
    });
  }
  all.wait();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(*number, 1);
}

RT_TEST(LocalValues, AGoroutineRunInPlaceByItsJoinerHasItsOwn) {
  Local<std::string> name;
  *name = "joiner";
  spawn([&] {
    EXPECT_EQ(*name, "");
    *name = "child";
  }).join();
  EXPECT_EQ(*name, "joiner");
}

RT_TEST(LocalValues, AreDestroyedOnceWhenReplacedAndWhenTheGoroutineEnds) {
  auto alive = std::make_shared<int>(0);
  Local<std::shared_ptr<int>> kept;
  WaitGroup all;
  for (int i = 0; i < 50; ++i) {
    all.go([&kept, alive] {
      kept.set(alive);
      be_overtaken();
      kept.set(alive);
    });
  }
  all.wait();
  // The group counts down before the goroutine has ended and its values are gone.
  EXPECT_TRUE(support::eventually([&] { return alive.use_count() == 1; }));
}

RT_TEST(LocalValues, ADestructorMayBlockAndUseOtherValues) {
  static Local<int> other(3);
  static std::atomic<int> seen;
  seen = 0;
  struct Late {
    bool armed = false;
    ~Late() {
      if (!armed) return;
      be_overtaken();
      seen += *other;
    }
  };
  static Local<Late> late;
  for (int i = 0; i < 10; ++i) go([] { late.get().armed = true; });
  EXPECT_TRUE(support::eventually([] { return seen == 30; }));
}

RT_TEST(LocalValues, OneThatAResultMadeAsItWasDestroyedDiesWithItsDetachedGoroutine) {
  static Local<std::shared_ptr<int>> kept;
  struct KeepsOneMore {
    std::shared_ptr<int> alive;
    KeepsOneMore(std::shared_ptr<int> its) : alive(std::move(its)) {}
    KeepsOneMore(KeepsOneMore&&) = default;
    ~KeepsOneMore() {
      if (alive != nullptr) kept.set(alive);
    }
  };
  auto alive = std::make_shared<int>(0);
  Chan<void> go_on;
  spawn([alive, go_on] {
    go_on.recv();
    return KeepsOneMore(alive);
  }).detach();
  go_on.close();
  EXPECT_TRUE(support::eventually([&] {
    yield();
    return alive.use_count() == 1;
  }));
}

TEST(LocalValues, APlainThreadHasItsOwnAndTheyDieWithIt) {
  auto alive = std::make_shared<int>(0);
  Local<std::shared_ptr<int>> kept;
  std::thread([&] {
    kept.set(alive);
    EXPECT_EQ(alive.use_count(), 2);
  }).join();
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_EQ(*kept, nullptr);
}

// A thread_local that is older than the thread's first value is destroyed after those.
TEST(LocalValues, AnOlderThreadLocalOfAPlainThreadMayUseThemInItsDestructor) {
  static std::shared_ptr<int> alive;
  static Local<std::shared_ptr<int>> kept;
  struct Late {
    ~Late() {
      EXPECT_EQ(*kept, nullptr);
      kept.set(alive);
    }
  };
  alive = std::make_shared<int>(0);
  for (int i = 0; i < 20; ++i) {
    std::thread([] {
      thread_local Late late;
      (void)&late;
      kept.set(alive);
    }).join();
    EXPECT_EQ(alive.use_count(), 1);
  }
}

// Main is a goroutine like any other: its values are destroyed while the runtime still runs.
TEST(LocalValues, OfMainMayWaitWhileTheyAreDestroyed) {
  static int destroyed;
  destroyed = 0;
  struct Waits {
    bool armed = false;
    ~Waits() {
      if (!armed) return;
      yield();
      spawn([] { yield(); }).join();
      sleep_for(std::chrono::microseconds(1));
      ++destroyed;
    }
  };
  static Local<Waits> value;
  for (const int procs : {1, 2, 8}) run(Options{.procs = procs}, [] { value->armed = true; });
  EXPECT_EQ(destroyed, 3);
}

RT_TEST(LocalValues, FollowWorkThatCarriesThem) {
  static Local<int> carried(0);
  carried.set(7);
  auto seen = spawn(carried.carry([] { return *carried; }));
  carried.set(8);
  EXPECT_EQ(seen.join(), 7);  // as it was when the work was made
  EXPECT_EQ(spawn([] { return *carried; }).join(), 0);

  auto add = carried.carry([](int n) { return *carried + n; });
  carried.set(1);
  EXPECT_EQ(add(10), 18);
  EXPECT_EQ(*carried, 1);  // put back
}

RT_TEST(LocalValues, ThatAreCarriedArePutBackAfterAnException) {
  static Local<std::string> carried;
  carried.set("mine");
  auto fail = carried.carry([]() -> int { throw std::runtime_error(*carried); });
  carried.set("other");
  try {
    fail();
    ADD_FAILURE();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "mine");
  }
  EXPECT_EQ(*carried, "other");
}

RT_TEST(LocalValues, AReferenceStaysValidWhileAnotherValueIsCarried) {
  static Local<std::string> carried;
  carried.set("made here");
  auto look = carried.carry([] { return *carried; });
  carried.set("mine");
  std::string& mine = carried.get();
  EXPECT_EQ(look(), "made here");
  ASSERT_EQ(&carried.get(), &mine);
  EXPECT_EQ(mine, "mine");
}

RT_TEST(LocalValues, AreCarriedByThousandsOfGoroutinesThroughAPool) {
  static Local<int> number(-1);
  constexpr int kJobs = 2000;
  std::atomic<int> right{0};
  {
    WorkerPool pool(4, 16);
    WaitGroup all;
    for (int i = 0; i < kJobs; ++i) {
      all.go([&, i] {
        number.set(i);
        pool.submit(number.carry([&, i] {
          yield();
          right += *number == i ? 1 : 0;
        }));
      });
    }
    all.wait();
    pool.wait();
  }
  EXPECT_EQ(right, kJobs);
}

}  // namespace
}  // namespace magpie
