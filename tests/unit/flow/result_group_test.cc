// result_group_test.cc: goroutines that are waited for together, and what they return.

#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/rt_test.h"

namespace magpie {
namespace {

RT_TEST(ResultGroup, ResultsComeInTheOrderOfGo) {
  ResultGroup<int> squares;
  std::vector<Chan<void>> gates(100);
  for (int i = 0; i < 100; ++i) {
    squares.go([i, gate = gates[static_cast<std::size_t>(i)]] {
      gate.recv();
      return i * i;
    });
  }
  for (int i = 99; i >= 0; --i) gates[static_cast<std::size_t>(i)].close();  // they end backwards
  std::vector<int> results = squares.wait();
  ASSERT_EQ(results.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(results[static_cast<std::size_t>(i)], i * i);
}

RT_TEST(ResultGroup, ResultsMayBeMoveOnly) {
  ResultGroup<std::unique_ptr<std::string>> group;
  group.go([text = std::make_unique<std::string>("kept")]() mutable { return std::move(text); });
  EXPECT_EQ(*group.wait().at(0), "kept");
}

RT_TEST(ResultGroup, TheFirstExceptionCancelsTheOthersAndTakesTheResultsAlong) {
  ResultGroup<int> group;
  group.go([] { return 1; });
  group.go([](const Context& context) {
    context.done().recv();
    return 2;
  });
  group.go([]() -> int { throw std::runtime_error("broken"); });
  EXPECT_THROW(group.wait(), std::runtime_error);
  group.go([] { return 4; });
  EXPECT_EQ(group.wait(), std::vector<int>{4});
}

RT_TEST(ResultGroup, ForgetsResultsThatItHasReturned) {
  ResultGroup<int> group;
  group.go([] { return 1; });
  EXPECT_EQ(group.wait(), std::vector<int>{1});
  EXPECT_TRUE(group.wait().empty());
}

RT_TEST(ResultGroup, AContextEndsTheWaitAndNothingIsLost) {
  ResultGroup<int> group;
  Chan<void> gate;
  group.go([gate] {
    gate.recv();
    return 7;
  });
  Context over = Context::background().with_cancel();
  over.cancel();
  std::error_code error;
  EXPECT_EQ(group.wait(over, error), std::nullopt);
  EXPECT_EQ(error, std::errc::operation_canceled);
  EXPECT_THROW(group.wait(over), std::system_error);
  gate.close();
  EXPECT_EQ(group.wait(), std::vector<int>{7});
}

RT_TEST(ResultGroup, AFunctionThatWasNotCalledHasNoResult) {
  ResultGroup<int> group;
  group.set_limit(1);
  Chan<void> gate;
  group.go([gate] {
    gate.recv();
    return 1;
  });
  Context over = Context::background().with_cancel();
  over.cancel();
  std::error_code error;
  EXPECT_FALSE(group.go(
      over, [] { return 2; }, error));
  gate.close();
  group.go([] { return 3; });
  EXPECT_EQ(group.wait(), (std::vector<int>{1, 3}));
}

RT_TEST(ResultGroup, ItsEndCancelsAndWaits) {
  bool was_told = false;
  {
    ResultGroup<int> group;
    group.go([&](const Context& context) {
      context.done().recv();
      was_told = true;
      return 0;
    });
  }
  EXPECT_TRUE(was_told);
}

RT_TEST(SpawnClosing, SelectWaitsForAGoroutineAmongOthers) {
  Chan<void> ended, gate;
  JoinHandle<int> answer = spawn_closing(ended, [gate] {
    gate.recv();
    return 42;
  });
  int seen = 0;
  EXPECT_EQ(select(on_recv(ended), otherwise()), 1u);
  gate.close();
  EXPECT_EQ(select(on_recv(ended, [&](bool) { seen = answer.join(); }), on_recv(Chan<int>::nil())),
            0u);
  EXPECT_EQ(seen, 42);
}

RT_TEST(SpawnClosing, TheChannelClosesWhenTheFunctionThrows) {
  Chan<void> ended;
  JoinHandle<void> failing = spawn_closing(ended, [] { throw std::runtime_error("broken"); });
  EXPECT_FALSE(ended.recv());
  EXPECT_THROW(failing.join(), std::runtime_error);
}

RT_TEST(SpawnClosing, AReferenceStaysOne) {
  Chan<void> ended;
  int value = 1;
  JoinHandle<int&> handle = spawn_closing(ended, [&]() -> int& { return value; });
  EXPECT_EQ(&handle.join(), &value);
}

// Its move throws when it is told to.
struct Stubborn {
  static inline std::atomic<bool> throws{false};

  explicit Stubborn(int its) : value(its) {}
  Stubborn(Stubborn&& other) : value(other.value) {
    if (throws) throw std::runtime_error("move");
  }
  Stubborn& operator=(Stubborn&&) = default;
  int value;
};

RT_TEST(ResultGroup, ResultsWhoseMoveThrowsAreForgottenAndHideNoFailure) {
  ResultGroup<Stubborn> group;
  auto fill = [&] {
    for (int i = 0; i < 3; ++i) group.go([i] { return Stubborn(i); });
    EXPECT_TRUE(support::eventually([] { return num_goroutines() == 1; }));
  };
  fill();
  Stubborn::throws = true;
  EXPECT_THROW(group.wait(), std::runtime_error);
  Stubborn::throws = false;
  EXPECT_EQ(group.wait().size(), 0u);

  fill();
  group.go([]() -> Stubborn { throw std::invalid_argument("the failure"); });
  EXPECT_TRUE(support::eventually([] { return num_goroutines() == 1; }));
  Stubborn::throws = true;
  EXPECT_THROW(group.wait(), std::invalid_argument);
  Stubborn::throws = false;
  EXPECT_EQ(group.wait().size(), 0u);
}

RT_TEST(ResultGroup, StartsAndWaitsWithinALimitAsATaskGroupDoes) {
  using namespace std::chrono_literals;
  ResultGroup<int> group;
  group.set_limit(1);
  Chan<void> gate;
  EXPECT_TRUE(group.try_go([=] {
    gate.recv();
    return 1;
  }));
  EXPECT_FALSE(group.try_go([] { return 2; }));
  EXPECT_FALSE(group.try_go_for(1us, [] { return 3; }));
  EXPECT_FALSE(group.try_go_until(std::chrono::steady_clock::now(), [] { return 4; }));
  EXPECT_EQ(group.wait_for(1us), std::nullopt);
  EXPECT_EQ(group.wait_until(std::chrono::system_clock::now()), std::nullopt);
  gate.close();
  EXPECT_EQ(group.wait_for(support::kGenerousLimit), std::vector<int>{1});
}

}  // namespace
}  // namespace magpie
