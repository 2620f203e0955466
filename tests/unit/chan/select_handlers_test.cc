// select_handlers_test.cc: what handlers of select() take, and loops that a handler ends.

#include <magpie/magpie.h>

#include <any>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/rt_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;

RT_TEST(SelectHandler, OfAReceiveMayTakeTheValueOnly) {
  Chan<int> numbers(1);
  numbers.send(7);
  int got = 0;
  EXPECT_EQ(select(on_recv(numbers, [&](int value) { got = value; })), 0u);
  EXPECT_EQ(got, 7);
}

RT_TEST(SelectHandler, ThatTakesTheValueGetsOneThatCanOnlyBeMoved) {
  Chan<std::unique_ptr<int>> numbers(2);
  numbers.send(std::make_unique<int>(7));
  numbers.send(std::make_unique<int>(8));
  std::unique_ptr<int> kept;
  select(on_recv(numbers, [&](std::unique_ptr<int> value) { kept = std::move(value); }));
  EXPECT_EQ(*kept, 7);
  select(on_recv(numbers, [&](const std::unique_ptr<int>& value) { EXPECT_EQ(*value, 8); }));
}

// An any may be made of an optional, too.
RT_TEST(SelectHandler, ThatTakesAnAnyGetsTheOneThatWasSent) {
  Chan<std::any> values(1);
  auto send_and_select = [&](auto handler) {
    values.send(std::any(7));
    select(on_recv(values, handler));
  };
  int got = 0;
  send_and_select([&](std::any value) { got = std::any_cast<int>(value); });
  EXPECT_EQ(std::exchange(got, 0), 7);
  send_and_select([&](const std::any& value) noexcept { got = *std::any_cast<int>(&value); });
  EXPECT_EQ(std::exchange(got, 0), 7);
  send_and_select([&](std::optional<std::any> value) { got = std::any_cast<int>(*value); });
  EXPECT_EQ(std::exchange(got, 0), 7);
  send_and_select([&](auto value) { got = std::any_cast<int>(*value); });  // an optional
  EXPECT_EQ(std::exchange(got, 0), 7);
  values.close();
  EXPECT_THROW(select(on_recv(values, [](std::any) {})), ClosedChannel);
}

RT_TEST(SelectHandler, ThatTakesTheValueIsServedWhileItWaits) {
  Chan<std::string> words;
  go([=] { words.send("late"); });
  std::string got;
  select(on_recv(words, [&](std::string&& word) { got = std::move(word); }));
  EXPECT_EQ(got, "late");
}

RT_TEST(SelectHandler, ThatTakesTheValueIsNotCalledForAClosedChannel) {
  Chan<int> numbers(1);
  numbers.send(7);
  numbers.close();
  std::vector<int> got;
  auto keep = [&](int value) { got.push_back(value); };
  select(on_recv(numbers, keep));
  EXPECT_THROW(select(on_recv(numbers, keep)), ClosedChannel);
  EXPECT_EQ(got, std::vector{7});
}

RT_TEST(SelectHandler, ThatTakesTheValueIsNotCalledWhenTheChannelIsClosedMeanwhile) {
  Chan<int> numbers;
  go([=] { numbers.close(); });
  EXPECT_THROW(select(on_recv(numbers, [](int) { ADD_FAILURE() << "called"; })), ClosedChannel);
}

RT_TEST(SelectHandler, ThatTakesAnOptionalIsNotMistakenForOneThatTakesAValue) {
  Chan<int> numbers;
  numbers.close();
  int calls = 0;
  select(on_recv(numbers, [&](std::optional<int> value) { calls += !value; }));
  select(on_recv(numbers, [&](auto value) { calls += !value.has_value(); }));
  select(on_recv(numbers, [&] { ++calls; }));
  EXPECT_EQ(calls, 3);
}

RT_TEST(SelectHandler, OfAChannelOfBoolsTakesTheBoolThatWasSent) {
  Chan<bool> answers(1);
  answers.send(false);
  bool got = true;
  select(on_recv(answers, [&](bool answer) { got = answer; }));
  EXPECT_FALSE(got);
}

RT_TEST(SelectHandler, OfASelectorMayTakeTheValueOnly) {
  Chan<int> numbers(2);
  numbers.send(7);
  numbers.send(8);
  int sum = 0;
  Selector selector;
  selector.recv(numbers, [&](int value) { sum += value; });
  selector.select();
  selector.select();
  EXPECT_EQ(sum, 15);
  numbers.close();
  EXPECT_THROW(selector.select(), ClosedChannel);
}

RT_TEST(SelectHandler, MayReturnWhatSelectDrops) {
  Chan<int> numbers(1);
  std::size_t chosen = select(on_send(numbers, 1, [] { return std::string("dropped"); }),
                              on_timeout(1h, [] { return 7; }));
  EXPECT_EQ(chosen, 0u);
}

RT_TEST(SelectNext, GoesOnUntilAHandlerReturnsFalse) {
  Chan<int> numbers;
  go([=] {
    for (int i = 1; i <= 100; ++i) numbers.send(i);
    numbers.close();
  });
  int sum = 0;
  while (select_next(on_recv(numbers, [&](std::optional<int> value) {
    sum += value.value_or(0);
    return value.has_value();
  }))) {
  }
  EXPECT_EQ(sum, 5050);
}

RT_TEST(SelectNext, GoesOnAfterHandlersThatReturnNothing) {
  Chan<int> numbers(3);
  int sent = 0;
  while (select_next(on_send(numbers, 1, [&] { ++sent; }), otherwise([] { return false; }))) {
  }
  EXPECT_EQ(sent, 3);
  int received = 0;
  while (select_next(on_recv(numbers, [&](int value) { received += value; }),
                     otherwise([] { return false; }))) {
  }
  EXPECT_EQ(received, 3);
  EXPECT_TRUE(select_next(on_send(numbers, 1)));  // no handler
}

RT_TEST(SelectNext, EndsByEachKindOfCase) {
  auto stop = [] { return false; };
  Chan<void> signals(1);
  EXPECT_FALSE(select_next(on_send(signals, stop)));
  EXPECT_FALSE(select_next(on_recv(signals, stop)));
  EXPECT_FALSE(select_next(on_recv(signals), on_timeout(0s, stop)));
  EXPECT_FALSE(select_next(on_recv(signals), on_deadline(std::chrono::steady_clock::now(), stop)));
  Context context = Context::background().with_cancel();
  context.cancel();
  EXPECT_FALSE(select_next(on_done(context, stop)));
  signals.close();
  EXPECT_FALSE(select_next(on_recv(signals, [](bool is_signal) { return is_signal; })));
}

RT_TEST(SelectNext, ThrowsWhatTheHandlerThrows) {
  EXPECT_THROW((void)select_next(otherwise([]() -> bool { throw 7; })), int);
}

}  // namespace
}  // namespace magpie
