// parallel_for and parallel_reduce as their users see them.
#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace {

using magpie::parallel_for;
using magpie::parallel_reduce;

// Whether every index of [first, first + size) is called once; called with what parallel_for
// promises.
void expect_each_once(std::int64_t first, std::size_t size, std::size_t grain) {
  std::vector<std::atomic<int>> calls(size);
  parallel_for(
      first, first + static_cast<std::int64_t>(size),
      [&](std::int64_t i) { calls[static_cast<std::size_t>(i - first)].fetch_add(1); }, grain);
  for (std::size_t i = 0; i < size; ++i)
    ASSERT_EQ(calls[i].load(), 1) << "index " << i << " of " << size << ", grain " << grain;
}

RT_TEST(ParallelFor, CallsEveryIndexOnceForAllSizesAroundPowersOfTwo) {
  expect_each_once(0, 0, 0);
  for (std::size_t power = 1; power <= 4096; power *= 2) {
    for (std::size_t size : {power - 1, power, power + 1}) expect_each_once(-7, size, 0);
  }
}

RT_TEST(ParallelFor, CallsEveryIndexOnceForAnyGrain) {
  for (std::size_t grain : {1, 2, 3, 7, 64, 999, 1000, 1001, 1'000'000}) {
    expect_each_once(0, 1000, grain);
  }
}

RT_TEST(ParallelFor, DoesNotDivideARangeUpToTheGrain) {
  std::uint64_t caller = magpie::goroutine_id();
  int calls = 0;  // not atomic: everything runs in the caller
  parallel_for(
      0, 100,
      [&](int) {
        EXPECT_EQ(magpie::goroutine_id(), caller);
        ++calls;
      },
      100);
  EXPECT_EQ(calls, 100);
}

RT_TEST(ParallelFor, CallsNothingForAnEmptyOrBackwardRange) {
  parallel_for(5, 5, [](int) { ADD_FAILURE(); });
  parallel_for(5, -5, [](int) { ADD_FAILURE(); });
  parallel_for(5u, 4u, [](unsigned) { ADD_FAILURE(); });
  parallel_for(std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(),
               [](std::int64_t) { ADD_FAILURE(); });
  std::vector<int> none;
  parallel_for(none, [](int) { ADD_FAILURE(); });
}

// The number of calls, and the sum of the distances from `first`, of a range near the end of its
// type.
template <class I>
void expect_whole(I first, I last) {
  std::atomic<std::uint64_t> calls{0}, distances{0};
  parallel_for(first, last, [&](I i) {
    calls.fetch_add(1);
    distances.fetch_add(static_cast<std::uint64_t>(i) - static_cast<std::uint64_t>(first));
  });
  std::uint64_t size = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first);
  EXPECT_EQ(calls.load(), size);
  EXPECT_EQ(distances.load(), size * (size - 1) / 2);
}

RT_TEST(ParallelFor, WorksAtTheEndsOfItsIndexType) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  expect_whole<std::int64_t>(most - 1000, most);
  expect_whole<std::int64_t>(least, least + 1000);
  expect_whole<std::uint64_t>(std::numeric_limits<std::uint64_t>::max() - 1000,
                              std::numeric_limits<std::uint64_t>::max());
  expect_whole<std::int8_t>(-128, 127);
  expect_whole<std::uint8_t>(0, 255);
  expect_whole<std::int16_t>(-100, 100);
}

// The loop over 2^64 - 1 indices is left by an exception at the first one.
RT_TEST(ParallelFor, TakesTheLargestRangeThereIs) {
  EXPECT_THROW(parallel_for(std::numeric_limits<std::int64_t>::min(),
                            std::numeric_limits<std::int64_t>::max(),
                            [](std::int64_t) { throw std::runtime_error("enough"); }),
               std::runtime_error);
}

RT_TEST(ParallelFor, TakesIndicesOfTwoTypes) {
  std::vector<int> values(100, 1);
  std::atomic<std::size_t> sum{0};
  parallel_for(0, values.size(), [&](std::size_t i) { sum.fetch_add(i); });
  EXPECT_EQ(sum.load(), 4950u);
  EXPECT_THROW(parallel_for(-1, values.size(), [](std::size_t) {}), std::invalid_argument);
}

RT_TEST(ParallelFor, GivesTheElementsOfIteratorsAndRangesByReference) {
  std::vector<int> values(1000);
  parallel_for(values.begin(), values.end(), [](int& value) { ++value; });
  parallel_for(values, [](int& value) { ++value; });
  std::array<std::unique_ptr<int>, 10> pointers;
  parallel_for(pointers, [](std::unique_ptr<int>& p) { p = std::make_unique<int>(2); });
  for (int value : values) ASSERT_EQ(value, 2);
  for (auto& p : pointers) ASSERT_EQ(*p, 2);
}

RT_TEST(ParallelFor, UsesTheFunctionItIsGivenAndNoCopy) {
  struct Counting {
    std::atomic<int> calls{0};
    void operator()(int) { calls.fetch_add(1); }
  } counting;
  parallel_for(0, 100, counting);
  EXPECT_EQ(counting.calls.load(), 100);
}

// A rendezvous of all Ps inside one loop: it ends only if so many iterations run at the same time.
RT_TEST(ParallelFor, LetsEveryPTakePart) {
  int wanted = magpie::procs();
  std::atomic<int> there{0};
  std::atomic<bool> all{true};
  parallel_for(0, wanted, [&](int) {
    there.fetch_add(1);
    // Does not yield: the others have to come on other Ps.
    auto limit = std::chrono::steady_clock::now() + magpie::support::kGenerousLimit;
    while (there.load() < wanted) {
      if (std::chrono::steady_clock::now() > limit) {
        all = false;
        return;
      }
    }
  });
  EXPECT_TRUE(all.load());
}

// Every iteration waits for all others: ends only if none shares a piece with another.
void meet_in_a_loop(std::size_t grain) {
  constexpr int kIterations = 100;
  magpie::WaitGroup all;
  all.add(kIterations);
  parallel_for(
      0, kIterations,
      [&](int) {
        all.done();
        all.wait();
      },
      grain);
}

RT_TEST(ParallelFor, GoesOnBesideIterationsThatBlock) { meet_in_a_loop(1); }

RT_TEST(ParallelFor, LearnsItsGrainOnlyFromIterationsThatHaveEnded) { meet_in_a_loop(0); }

RT_TEST(ParallelFor, Nests) {
  constexpr int kSide = 30;
  std::vector<std::atomic<int>> cells(kSide * kSide * kSide);
  parallel_for(0, kSide, [&](int x) {
    parallel_for(0, kSide, [&](int y) {
      parallel_for(0, kSide, [&](int z) {
        cells[static_cast<std::size_t>((x * kSide + y) * kSide + z)].fetch_add(1);
      });
    });
  });
  for (auto& cell : cells) ASSERT_EQ(cell.load(), 1);
}

RT_TEST(ParallelFor, RethrowsWhatAnIterationThrew) {
  for (int culprit : {0, 1, 499, 998, 999}) {
    try {
      parallel_for(0, 1000, [&](int i) {
        if (i == culprit) throw std::runtime_error("iteration " + std::to_string(i));
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), "iteration " + std::to_string(culprit));
    }
  }
}

RT_TEST(ParallelFor, RethrowsOneOfManyExceptions) {
  EXPECT_THROW(parallel_for(
                   0, 100, [](int i) { throw i; }, 1),
               int);
}

RT_TEST(ParallelFor, LeavesOnlyWhenEverythingThatBeganHasEnded) {
  for (int round = 0; round < magpie::support::scaled(100); ++round) {
    std::atomic<int> inside{0};
    EXPECT_THROW(parallel_for(
                     0, 64,
                     [&](int i) {
                       inside.fetch_add(1);
                       if (i == 40) {
                         inside.fetch_sub(1);
                         throw std::runtime_error("40");
                       }
                       magpie::yield();
                       inside.fetch_sub(1);
                     },
                     1),
                 std::runtime_error);
    ASSERT_EQ(inside.load(), 0);
  }
}

// Its nth move throws, counted in all goroutines.
struct Fragile {
  explicit Fragile(int its) : value(its) {}
  Fragile(const Fragile&) = default;
  Fragile& operator=(const Fragile&) = default;
  Fragile(Fragile&& other) : value(other.value) { count_move(); }
  Fragile& operator=(Fragile&& other) {
    value = other.value;
    count_move();
    return *this;
  }
  static void count_move() {
    if (moves_left.fetch_sub(1) == 1) throw std::runtime_error("no move");
  }
  int value;
  static inline std::atomic<int> moves_left{0};
};

RT_TEST(ParallelReduce, RethrowsWhatAMoveOfAResultThrew) {
  auto sum = [] {
    return parallel_reduce(
               0, 16, Fragile(0), [](int i) { return Fragile(i); },
               [](Fragile a, const Fragile& b) {
                 a.value += b.value;
                 return a;
               },
               2)
        .value;
  };
  Fragile::moves_left = 1'000'000;
  EXPECT_EQ(sum(), 120);
  const int moves = 1'000'000 - Fragile::moves_left;
  for (int nth = 1; nth <= moves; ++nth) {
    Fragile::moves_left = nth;
    EXPECT_THROW(sum(), std::runtime_error) << "move " << nth << " of " << moves;
  }
}

// Without preemption one proc goes through the loop from left to right, so that nothing behind the
// failure may have begun.
TEST(ParallelFor, DoesNotBeginWhatComesAfterAFailure) {
  magpie::run({.procs = 1, .preempt = false}, [] {
    int last = -1;
    EXPECT_THROW(parallel_for(0, 1'000'000,
                              [&](int i) {
                                last = i;
                                if (i == 300) throw std::runtime_error("300");
                              }),
                 std::runtime_error);
    EXPECT_EQ(last, 300);
  });
}

// Within one slice: a goroutine that joins others in place gives way after that, in real time.
TEST(ParallelFor, RunsFromLeftToRightAtOneProcWithoutPreemption) {
  magpie::run({.procs = 1, .preempt = false}, [] {
    bool in_order = false;
    for (int tries = 0; tries < 200 && !in_order; ++tries) {
      std::vector<int> order;
      parallel_for(0, 1'000, [&](int i) { order.push_back(i); });
      ASSERT_EQ(order.size(), 1'000u);
      in_order = std::is_sorted(order.begin(), order.end());
    }
    EXPECT_TRUE(in_order);
  });
}

RT_TEST(ParallelFor, RunsOnGoroutinesWhenAPlainThreadCallsIt) {
  std::atomic<int> calls{0};
  std::atomic<bool> on_goroutines{true};
  magpie::support::PlainThread thread([&] {
    parallel_for(0, 1000, [&](int) {
      calls.fetch_add(1);
      if (magpie::goroutine_id() == 0) on_goroutines = false;
    });
    try {
      parallel_for(0, 10, [](int) { throw std::runtime_error("seen by the thread"); });
      ADD_FAILURE();
    } catch (const std::runtime_error&) {
      calls.fetch_add(1);
    }
  });
  thread.join();
  EXPECT_EQ(calls.load(), 1001);
  EXPECT_TRUE(on_goroutines.load());
}

TEST(ParallelFor, ThrowsWhenNoRuntimeRuns) {
  EXPECT_THROW(parallel_for(0, 10, [](int) { ADD_FAILURE(); }), std::logic_error);
  EXPECT_THROW(parallel_for(0, 0, [](int) { ADD_FAILURE(); }), std::logic_error);
  EXPECT_THROW((void)parallel_reduce(0, 10, 0, std::identity{}, std::plus<>{}), std::logic_error);
}

RT_TEST(ParallelReduce, AddsUp) {
  constexpr std::int64_t kMost = 1'000'000;
  EXPECT_EQ(
      parallel_reduce(std::int64_t{0}, kMost, std::int64_t{0}, std::identity{}, std::plus<>{}),
      kMost * (kMost - 1) / 2);
  std::vector<int> values(5000, 3);
  EXPECT_EQ(parallel_reduce(values, 0, std::identity{}, std::plus<>{}), 15'000);
  EXPECT_EQ(parallel_reduce(values.begin(), values.end(), 0, std::identity{}, std::plus<>{}),
            15'000);
}

RT_TEST(ParallelReduce, IsTheIdentityOfAnEmptyRange) {
  EXPECT_EQ(parallel_reduce(
                3, 3, std::string("nothing"), [](int) { return std::string(); }, std::plus<>{}),
            "nothing");
}

// Concatenation does not commute: any wrong order shows.
RT_TEST(ParallelReduce, KeepsNeighboursInOrder) {
  for (std::size_t grain : {0, 1, 3}) {
    for (int size : {1, 2, 3, 100, 1000}) {
      std::string expected;
      for (int i = 0; i < size; ++i) expected += std::to_string(i) + ",";
      std::string found = parallel_reduce(
          0, size, std::string(),
          [](int i) {
            if (i % 16 == 0) magpie::yield();  // so that pieces end in any order
            return std::to_string(i) + ",";
          },
          std::plus<>{}, grain);
      ASSERT_EQ(found, expected) << "size " << size << ", grain " << grain;
    }
  }
}

RT_TEST(ParallelReduce, TakesABodyForWholePieces) {
  std::vector<int> values(10'000);
  std::iota(values.begin(), values.end(), 0);
  using At = std::vector<int>::iterator;
  std::int64_t sum = parallel_reduce(
      values.begin(), values.end(), std::int64_t{0},
      [](At first, At last, std::int64_t before) { return std::accumulate(first, last, before); },
      std::plus<>{});
  EXPECT_EQ(sum, 49'995'000);
}

RT_TEST(ParallelReduce, RethrowsWhatMapOrCombineThrew) {
  auto throws_at_500 = [](int i) { return i == 500 ? throw std::runtime_error("map") : i; };
  EXPECT_THROW((void)parallel_reduce(0, 1000, 0, throws_at_500, std::plus<>{}), std::runtime_error);
  auto throws = [](int, int) -> int { throw std::domain_error("combine"); };
  EXPECT_THROW((void)parallel_reduce(0, 1000, 0, std::identity{}, throws), std::domain_error);
}

RT_TEST(ParallelReduce, MovesItsResults) {
  struct Best {
    std::vector<int> digits;
    Best() : digits(3, 9) {}
    Best(const Best&) = default;
    Best(Best&&) = default;
    Best& operator=(Best&&) = default;
  };
  Best best = parallel_reduce(
      0, 100, Best{}, [](int) { return Best{}; }, [](Best a, Best) { return a; });
  EXPECT_EQ(best.digits, std::vector<int>(3, 9));
}

}  // namespace
