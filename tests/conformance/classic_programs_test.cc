// classic_programs_test.cc: the programs that everybody writes with goroutines and channels.

#include <magpie/magpie.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

// ---- the prime sieve: each filter is a goroutine, the chain grows as primes are found

RT_TEST(ClassicPrograms, ThePrimeSieveFindsThePrimes) {
  const int limit = support::scaled(100) < 100 ? 30 : 300;
  Chan<int> numbers;
  Chan<void> quit;
  // Each stage ends when its reader has gone.
  auto pass = [quit](const Chan<int>& out, int value) {
    bool sent = false;
    select(on_send(out, value, [&] { sent = true; }), on_recv(quit));
    return sent;
  };
  WaitGroup all;
  all.go([=] {
    for (int i = 2; pass(numbers, i); ++i) {
    }
  });
  std::vector<int> primes;
  Chan<int> in = numbers;
  for (;;) {
    int prime = *in.recv();
    if (prime > limit) break;
    primes.push_back(prime);
    Chan<int> out;
    all.go([=] {
      for (;;) {
        std::optional<int> value;
        select(on_recv(in, [&](std::optional<int> v) { value = v; }), on_recv(quit));
        if (!value) return;
        if (*value % prime != 0 && !pass(out, *value)) return;
      }
    });
    in = out;
  }
  quit.close();
  all.wait();

  std::vector<int> expected;
  for (int n = 2; n <= limit; ++n) {
    bool prime = true;
    for (int d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
    if (prime) expected.push_back(n);
  }
  EXPECT_EQ(primes, expected);
}

// ---- pipelines

Chan<long> stage(const Chan<long>& in, std::size_t capacity, long (*f)(long)) {
  Chan<long> out(capacity);
  go([=] {
    for (long value : in) out.send(f(value));
    out.close();
  });
  return out;
}

RT_TEST(ClassicPrograms, APipelineOfStagesKeepsTheOrder) {
  for (std::size_t capacity : {0, 8}) {
    const long count = support::scaled(1000);
    Chan<long> numbers(capacity);
    go([=] {
      for (long i = 0; i < count; ++i) numbers.send(i);
      numbers.close();
    });
    Chan<long> end = stage(stage(stage(numbers, capacity, [](long v) { return v + 1; }), capacity,
                                 [](long v) { return v * v; }),
                           capacity, [](long v) { return v - 1; });
    long next = 0;
    for (long value : end) {
      ASSERT_EQ(value, (next + 1) * (next + 1) - 1);
      ++next;
    }
    EXPECT_EQ(next, count);
  }
}

RT_TEST(ClassicPrograms, WorkFansOutAndResultsFanIn) {
  constexpr int kWorkers = 8;
  const long jobs_count = support::scaled(2000);
  Chan<long> jobs(4), results(4);
  WaitGroup workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.go([=] {
      for (long job : jobs) results.send(job * 2);
    });
  }
  go([=] {
    for (long i = 0; i < jobs_count; ++i) jobs.send(i);
    jobs.close();
  });
  go([&workers, results] {
    workers.wait();
    results.close();
  });
  long sum = 0, count = 0;
  for (long result : results) {
    sum += result;
    ++count;
  }
  EXPECT_EQ(count, jobs_count);
  EXPECT_EQ(sum, jobs_count * (jobs_count - 1));
}

// ---- the same fringe: two walkers send the values of two trees, which are compared as they come

struct Tree {
  int value;
  std::unique_ptr<Tree> left, right;

  void insert(int v) {
    auto& side = v < value ? left : right;
    if (side == nullptr) {
      side = std::make_unique<Tree>(Tree{v, nullptr, nullptr});
    } else {
      side->insert(v);
    }
  }
  void walk(const Chan<int>& out) const {
    if (left) left->walk(out);
    out.send(value);
    if (right) right->walk(out);
  }
};

RT_TEST(ClassicPrograms, TwoTreesOfDifferentShapeHoldTheSameValues) {
  Tree a{50, nullptr, nullptr}, b{3, nullptr, nullptr};
  for (int i = 0; i < 100; ++i) {
    if (i * 37 % 100 != a.value) a.insert(i * 37 % 100);
    if (i * 3 % 100 != b.value) b.insert(i * 3 % 100);
  }
  auto values_of = [](const Tree& tree) {
    Chan<int> out;
    go([&tree, out] {
      tree.walk(out);
      out.close();
    });
    return out;
  };
  Chan<int> left = values_of(a), right = values_of(b);
  int count = 0;
  for (int value : left) {
    ASSERT_EQ(value, count++);
    ASSERT_EQ(right.recv(), value);
  }
  EXPECT_EQ(right.recv(), std::nullopt);
  EXPECT_EQ(count, 100);
}

// ---- the dining philosophers, with channels as forks

RT_TEST(ClassicPrograms, PhilosophersEatAndNobodyStarves) {
  constexpr std::size_t kSeats = 5;
  const int meals = support::scaled(200);
  std::array<Chan<void>, kSeats> forks{Chan<void>(1), Chan<void>(1), Chan<void>(1), Chan<void>(1),
                                       Chan<void>(1)};
  std::array<int, kSeats> eating{};  // plain: two forks guard it and its neighbours
  std::array<int, kSeats> eaten{};
  for (auto& fork : forks) fork.send();
  WaitGroup all;
  for (std::size_t seat = 0; seat < kSeats; ++seat) {
    all.go([&, seat] {
      std::size_t left = seat, right = (seat + 1) % kSeats;
      if (left > right) std::swap(left, right);  // the lower one first: no circle of waiting
      for (int i = 0; i < meals; ++i) {
        forks[left].recv();
        forks[right].recv();
        EXPECT_EQ(eating[(seat + 1) % kSeats], 0);
        EXPECT_EQ(eating[(seat + kSeats - 1) % kSeats], 0);
        eating[seat] = 1;
        ++eaten[seat];
        if (i % 16 == 0) yield();
        eating[seat] = 0;
        forks[right].send();
        forks[left].send();
      }
    });
  }
  all.wait();
  for (int count : eaten) EXPECT_EQ(count, meals);
}

// ---- chameneos: creatures meet in pairs and change their colours

enum Colour { blue, red, yellow };

Colour complement(Colour mine, Colour other) {
  return mine == other ? mine : static_cast<Colour>(3 - mine - other);
}

struct Visitor {
  Colour colour;
  Chan<std::optional<Colour>> answer;  // the other's colour; nullopt: the place is closed
};

RT_TEST(ClassicPrograms, ChameneosMeetAsOftenAsTheyMay) {
  constexpr int kCreatures = 7;
  const int meetings = support::scaled(1000);
  Chan<Visitor> place;
  WaitGroup all;
  std::atomic<int> met{0};
  for (int i = 0; i < kCreatures; ++i) {
    all.go([&place, &met, i] {
      Colour colour = static_cast<Colour>(i % 3);
      Chan<std::optional<Colour>> answer(1);
      for (;;) {
        place.send(Visitor{colour, answer});
        std::optional<Colour> other = *answer.recv();
        if (!other) return;
        colour = complement(colour, *other);
        ++met;
      }
    });
  }
  for (int i = 0; i < meetings; ++i) {
    Visitor one = *place.recv(), two = *place.recv();
    one.answer.send(two.colour);
    two.answer.send(one.colour);
  }
  for (int i = 0; i < kCreatures; ++i) place.recv()->answer.send(std::nullopt);
  all.wait();
  EXPECT_EQ(met, 2 * meetings);
}

// ---- a daisy chain

RT_TEST(ClassicPrograms, AWhisperTravelsThroughAThousandGophers) {
  const int gophers = support::scaled(1000);
  Chan<int> leftmost;
  Chan<int> right = leftmost;
  for (int i = 0; i < gophers; ++i) {
    Chan<int> left = right;
    right = Chan<int>();
    go([left, right] { left.send(1 + *right.recv()); });
  }
  right.send(0);
  EXPECT_EQ(leftmost.recv(), gophers);
}

}  // namespace
}  // namespace magpie
