// pool_test.cc: things that a pool lends.

#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "support/rt_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::waiting_is;

// Counts what there is, and how much was made.
struct Counts {
  std::atomic<int> made{0};
  std::atomic<int> alive{0};
};

// Not movable: so are many connections.
struct Line {
  explicit Line(Counts& its) : counts(its), number(++its.made) { ++its.alive; }
  ~Line() { --counts.alive; }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  Counts& counts;
  const int number;
  bool broken = false;
};

RT_TEST(Pool, LendsWhatCameBackAgain) {
  Counts counts;
  Pool<Line> pool(2, [&] { return Line(counts); });
  { EXPECT_EQ(pool.take()->number, 1); }
  {
    auto again = pool.take();
    auto another = pool.take();
    EXPECT_EQ(again->number, 1);
    EXPECT_EQ((*another).number, 2);
    EXPECT_EQ(pool.idle(), 0u);
  }
  EXPECT_EQ(pool.idle(), 2u);
  EXPECT_EQ(counts.alive, 2);
}

RT_TEST(Pool, MayHaveRoomForMoreThanMemoryHolds) {
  for (std::int64_t most :
       {std::int64_t{1} << 40, Semaphore::max(), std::numeric_limits<std::int64_t>::max()}) {
    Counts counts;
    Pool<Line> pool(most, [&] { return Line(counts); });
    { EXPECT_EQ(pool.take()->number, 1); }
    EXPECT_EQ(pool.take()->number, 1);
    EXPECT_EQ(pool.idle(), 1u);
  }
}

RT_TEST(Pool, TakeWaitsWhileAllAreLent) {
  Counts counts;
  Pool<Line> pool(1, [&] { return Line(counts); });
  std::optional lent(pool.take());
  auto waiting = spawn([&] { return pool.take()->number; });
  ASSERT_TRUE(waiting_is(1));
  lent.reset();
  EXPECT_EQ(waiting.join(), 1);
}

RT_TEST(Pool, ATakeThatIsCancelledTakesNothing) {
  Counts counts;
  Pool<Line> pool(1, [&] { return Line(counts); });
  Context context = Context::background().with_cancel();
  {
    auto lent = pool.take(context);
    auto waiting = spawn([&] { (void)pool.take(context); });
    ASSERT_TRUE(waiting_is(1));
    context.cancel();
    EXPECT_THROW(waiting.join(), std::system_error);
    std::error_code error;
    EXPECT_FALSE(pool.take(context, error));
    EXPECT_EQ(error, std::errc::operation_canceled);
  }
  EXPECT_EQ(pool.take()->number, 1);
}

RT_TEST(Pool, TheMakerGetsTheContextOfItsCaller) {
  Pool<int> pool(1, [](const Context& context) { return *context.value<int>("number"); });
  EXPECT_EQ(*pool.take(Context::background().with_value("number", 7)), 7);
}

RT_TEST(Pool, WhatWasIdleForTooLongIsDestroyed) {
  Counts counts;
  Pool<Line> pool(2, [&] { return Line(counts); }, {.idle_time = 1us});
  { auto two = std::pair(pool.take(), pool.take()); }
  sleep_for(1ms);
  { EXPECT_EQ(pool.take()->number, 3); }
  EXPECT_EQ(counts.alive, 1);
  sleep_for(1ms);
  pool.prune();
  EXPECT_EQ(pool.idle(), 0u);
  EXPECT_EQ(counts.alive, 0);
}

RT_TEST(Pool, PruneLeavesWhatWasIdleForLess) {
  Counts counts;
  Pool<Line> pool(2, [&] { return Line(counts); }, {.idle_time = 1h});
  { auto one = pool.take(); }
  pool.prune();
  EXPECT_EQ(pool.idle(), 1u);
}

RT_TEST(Pool, WhatIsNotHealthyIsDestroyed) {
  Counts counts;
  Pool<Line> pool(2, [&] { return Line(counts); },
                  {.is_healthy = [](Line& line) { return !line.broken; }});
  {
    auto good = pool.take();
    auto bad = pool.take();
    bad->broken = true;
  }
  auto good = pool.take();
  auto fresh = pool.take();
  EXPECT_EQ(good->number + fresh->number, 1 + 3);
  EXPECT_EQ(counts.alive, 2);
}

RT_TEST(Pool, WhatIsDiscardedLeavesItsPlace) {
  Counts counts;
  Pool<Line> pool(1, [&] { return Line(counts); });
  auto lease = pool.take();
  lease.discard();
  EXPECT_FALSE(lease);
  EXPECT_EQ(counts.alive, 0);
  lease = pool.take();
  EXPECT_EQ(lease->number, 2);
}

RT_TEST(Pool, AnExceptionOfTheMakerOrTheCheckLeavesThePlaceFree) {
  Counts counts;
  bool fails = true;
  auto fail = [&] {
    if (fails) throw std::runtime_error("not now");
  };
  Pool<Line> pool(1,
                  [&] {
                    fail();
                    return Line(counts);
                  },
                  {.is_healthy = [&](Line&) {
                    fail();
                    return true;
                  }});
  EXPECT_THROW((void)pool.take(), std::runtime_error);
  fails = false;
  { EXPECT_EQ(pool.take()->number, 1); }
  fails = true;
  EXPECT_THROW((void)pool.take(), std::runtime_error);
  EXPECT_EQ(counts.alive, 0);
  fails = false;
  EXPECT_EQ(pool.take()->number, 2);
}

RT_TEST(Pool, ALeaseMayOutliveThePool) {
  Counts counts;
  {
    std::optional<Pool<Line>::Lease> lease;
    {
      Pool<Line> pool(2, [&] { return Line(counts); });
      lease.emplace(pool.take());
      { auto idle = pool.take(); }
    }
    EXPECT_EQ(counts.alive, 1);
    EXPECT_EQ((*lease)->number, 1);
  }
  EXPECT_EQ(counts.alive, 0);
}

RT_TEST(Pool, ThereAreNeverMoreThanItHasRoomFor) {
  Counts counts;
  Pool<Line> pool(3, [&] { return Line(counts); }, {.idle_time = 1us, .is_healthy = [](Line& line) {
                                                      return line.number % 3 != 0;
                                                    }});
  WaitGroup all;
  for (int user = 0; user < 10; ++user) {
    all.go([&, user] {
      for (int i = 0; i < 30; ++i) {
        auto lease = pool.take();
        EXPECT_LE(counts.alive, 3);
        yield();
        if ((i + user) % 7 == 0) lease.discard();
      }
    });
  }
  all.wait();
  EXPECT_EQ(counts.alive, static_cast<int>(pool.idle()));
}

RT_TEST(Pool, NeedsRoomForOne) {
  EXPECT_THROW(Pool<int>(0, [] { return 1; }), std::invalid_argument);
}

}  // namespace
}  // namespace magpie
