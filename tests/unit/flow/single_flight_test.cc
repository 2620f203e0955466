// single_flight_test.cc: callers that ask for the same share one answer.

#include <magpie/magpie.h>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/rt_test.h"

namespace magpie {
namespace {

using support::waiting_is;

RT_TEST(SingleFlight, CallersThatComeMeanwhileShareOneCall) {
  SingleFlight<std::string, int> flights;
  Chan<void> gate;
  std::atomic<int> calls{0};
  auto ask = [&] {
    return flights.call("answer", [&] {
      ++calls;
      gate.recv();
      return 42;
    });
  };
  std::vector<JoinHandle<int>> callers;
  for (int i = 0; i < 6; ++i) callers.push_back(spawn(ask));
  ASSERT_TRUE(waiting_is(6));
  gate.close();
  for (auto& caller : callers) EXPECT_EQ(caller.join(), 42);
  EXPECT_EQ(calls, 1);
}

RT_TEST(SingleFlight, KeepsNothingAfterTheCall) {
  SingleFlight<int, int> flights;
  int calls = 0;
  EXPECT_EQ(flights.call(1, [&] { return ++calls; }), 1);
  EXPECT_EQ(flights.call(1, [&] { return ++calls; }), 2);
}

RT_TEST(SingleFlight, KeepsNothingAlthoughTheCallMovesFromItsKey) {
  SingleFlight<std::string, int> flights;
  int calls = 0;
  for (int i = 1; i <= 2; ++i) {
    std::string key = "the same for both";
    int result = flights.call(key, [&] {
      std::string taken = std::move(key);
      key = "another";
      return ++calls;
    });
    EXPECT_EQ(result, i);
  }
}

RT_TEST(SingleFlight, OtherKeysDoNotWait) {
  SingleFlight<int, int> flights;
  Chan<void> gate;
  auto first = spawn([&] {
    return flights.call(1, [&] {
      gate.recv();
      return 1;
    });
  });
  ASSERT_TRUE(waiting_is(1));
  EXPECT_EQ(flights.call(2, [] { return 2; }), 2);
  gate.close();
  EXPECT_EQ(first.join(), 1);
}

RT_TEST(SingleFlight, AnExceptionGoesToAllThatWait) {
  SingleFlight<int, int> flights;
  Chan<void> gate;
  auto ask = [&] {
    return flights.call(1, [&]() -> int {
      gate.recv();
      throw std::runtime_error("no answer");
    });
  };
  auto first = spawn(ask);
  auto second = spawn(ask);
  ASSERT_TRUE(waiting_is(2));
  gate.close();
  EXPECT_THROW(first.join(), std::runtime_error);
  EXPECT_THROW(second.join(), std::runtime_error);
  EXPECT_EQ(flights.call(1, [] { return 1; }), 1);
}

RT_TEST(SingleFlight, WaitingEndsWithTheContextAndTheCallGoesOn) {
  SingleFlight<int, int> flights;
  Chan<void> gate;
  auto first = spawn([&] {
    return flights.call(1, [&] {
      gate.recv();
      return 1;
    });
  });
  ASSERT_TRUE(waiting_is(1));
  Context context = Context::background().with_cancel();
  auto second = spawn([&] { return flights.call(context, 1, [] { return 2; }); });
  ASSERT_TRUE(waiting_is(2));
  context.cancel();
  EXPECT_THROW(second.join(), std::system_error);
  std::error_code error;
  EXPECT_EQ(flights.call(
                context, 3, [] { return 3; }, error),
            std::nullopt);  // not even tried
  EXPECT_EQ(error, std::errc::operation_canceled);
  gate.close();
  EXPECT_EQ(first.join(), 1);
}

RT_TEST(SingleFlight, ForgetLetsTheNextCallerComputeAnew) {
  SingleFlight<int, int> flights;
  Chan<void> old_gate, new_gate;
  auto call_behind = [&](const Chan<void>& gate, int value) {
    return spawn([&flights, gate, value] {
      return flights.call(1, [&] {
        gate.recv();
        return value;
      });
    });
  };
  auto old_call = call_behind(old_gate, 1);
  ASSERT_TRUE(waiting_is(1));
  flights.forget(1);
  auto new_call = call_behind(new_gate, 2);
  ASSERT_TRUE(waiting_is(2));
  old_gate.close();
  EXPECT_EQ(old_call.join(), 1);
  auto third = call_behind(Chan<void>::nil(), 3);  // joins the new call, which the old did not end
  ASSERT_TRUE(waiting_is(2));
  new_gate.close();
  EXPECT_EQ(new_call.join(), 2);
  EXPECT_EQ(third.join(), 2);
}

TEST(SingleFlight, WorksForPlainThreads) {
  SingleFlight<int, int> flights;
  std::atomic<int> sum{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] { sum += flights.call(1, [] { return 10; }); });
  }
  EXPECT_EQ(sum, 40);
}

// A hash, a comparison or a copy that throws when it is told to.
struct Moody {
  static inline std::atomic<bool> hash_throws{false}, copy_throws{false};

  explicit Moody(int its) : value(its) {}
  Moody(const Moody& other) : value(other.value) {
    if (copy_throws) throw std::runtime_error("copy");
  }
  bool operator==(const Moody& other) const { return value == other.value; }
  int value;
};
struct MoodyHash {
  std::size_t operator()(const Moody& key) const {
    if (Moody::hash_throws) throw std::runtime_error("hash");
    return static_cast<std::size_t>(key.value);
  }
};

RT_TEST(SingleFlight, AHashThatThrowsAfterTheCallLeavesNobodyBehind) {
  SingleFlight<Moody, int, MoodyHash> flights;
  Chan<void> gate;
  auto ask = [&] {
    return flights.call(Moody(1), [&] {
      gate.recv();
      Moody::hash_throws = true;
      return 42;
    });
  };
  JoinHandle<int> first = spawn(ask), second = spawn(ask);
  ASSERT_TRUE(waiting_is(2));
  gate.close();
  EXPECT_EQ(first.join(), 42);
  EXPECT_EQ(second.try_join_for(support::kGenerousLimit), 42);
  Moody::hash_throws = false;
  EXPECT_EQ(flights.call(Moody(1), [] { return 43; }), 43);
}

RT_TEST(SingleFlight, AKeyThatCannotBeCopiedOrHashedIsNotKept) {
  SingleFlight<Moody, int, MoodyHash> flights;
  int calls = 0;
  auto ask = [&] { return flights.call(Moody(1), [&] { return ++calls; }); };
  for (std::atomic<bool>* throws : {&Moody::copy_throws, &Moody::hash_throws}) {
    *throws = true;
    EXPECT_THROW(ask(), std::runtime_error);
    *throws = false;
  }
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(ask(), 1);
}

}  // namespace
}  // namespace magpie
