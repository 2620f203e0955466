// selector_test.cc: select over cases that are known at run time.

#include <magpie/magpie.h>

#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "support/rt_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;

// Its move throws when it is told to.
struct Stubborn {
  static inline int throws_in = 0;

  explicit Stubborn(int its) : value(its) {}
  Stubborn(Stubborn&& other) : value(other.value) {
    if (throws_in > 0 && --throws_in == 0) throw std::runtime_error("move");
    other.value = -1;
  }
  int value;
};

// ---- Selector

RT_TEST(Selector, ChoosesAsSelectDoes) {
  Chan<int> a(1), b(1);
  Selector selector;
  int got = 0;
  EXPECT_EQ(selector.recv(a, [&](std::optional<int> v) { got = *v; }), 0u);
  EXPECT_EQ(selector.recv(b, [&](std::optional<int> v) { got = *v; }), 1u);
  EXPECT_EQ(selector.otherwise([&] { got = -1; }), 2u);
  EXPECT_EQ(selector.size(), 3u);
  EXPECT_EQ(selector.select(), 2u);
  EXPECT_EQ(got, -1);
  b.send(7);
  EXPECT_EQ(selector.select(), 1u);
  EXPECT_EQ(got, 7);
  a.send(8);
  EXPECT_EQ(selector.select(), 0u);
  EXPECT_EQ(got, 8);
}

RT_TEST(Selector, ASendCaseSendsACopyEachTime) {
  Chan<std::string> c(3);
  Selector selector;
  selector.send(c, "again");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(selector.select(), 0u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(c.recv(), "again");
}

RT_TEST(Selector, AValueThatCannotBeCopiedIsSentOnce) {
  Chan<std::unique_ptr<int>> c(3);
  Selector selector;
  selector.send(c, std::make_unique<int>(7));
  selector.otherwise();
  EXPECT_EQ(selector.select(), 0u);
  EXPECT_EQ(selector.select(), 1u);
  EXPECT_EQ(c.size(), 1u);
  EXPECT_EQ(**c.recv(), 7);
}

RT_TEST(Selector, WaitsOnManyChannels) {
  std::vector<Chan<int>> channels;
  for (int i = 0; i < 100; ++i) channels.emplace_back();
  auto waiter = spawn([&] {
    Selector selector;
    long sum = 0;
    for (auto& c : channels) selector.recv(c, [&](std::optional<int> v) { sum += *v; });
    for (std::size_t i = 0; i < channels.size(); ++i) selector.select();
    return sum;
  });
  for (int i = 0; i < 100; ++i)
    go([&channels, i] { channels[static_cast<std::size_t>(i)].send(i); });
  EXPECT_EQ(waiter.join(), 4950);
}

RT_TEST(Selector, ItKeepsItsChannelsAlive) {
  Selector selector;
  int got = 0;
  {
    Chan<int> c(1);
    c.send(7);
    selector.recv(c, [&](std::optional<int> v) { got = *v; });
  }
  EXPECT_EQ(selector.select(), 0u);
  EXPECT_EQ(got, 7);
}

RT_TEST(Selector, TimeoutsBeginAnewAndSignalsHaveNoValue) {
  Chan<void> c(1);
  Selector selector;
  selector.recv(c);
  selector.timeout(1ms);
  EXPECT_EQ(selector.select(), 1u);
  EXPECT_EQ(selector.select(), 1u);
  selector.clear();
  EXPECT_EQ(selector.size(), 0u);
  EXPECT_EQ(selector.send(c), 0u);
  EXPECT_EQ(selector.select(), 0u);
  EXPECT_EQ(c.size(), 1u);
}

TEST(Selector, Takes65536CasesAndNoMore) {
  run([] {
    Chan<int> c;
    Selector selector;
    for (std::size_t i = 0; i < 65'536; ++i) selector.recv(c);
    EXPECT_THROW(selector.recv(c), std::length_error);
    EXPECT_THROW(selector.otherwise(), std::length_error);
    auto sender = spawn([&] { c.send(7); });
    EXPECT_LT(selector.select(), 65'536u);
  });
}

RT_TEST(Selector, ASecondOtherwiseThrows) {
  Selector selector;
  selector.otherwise();
  EXPECT_THROW(selector.otherwise(), std::logic_error);
}

RT_TEST(Selector, AValueWhoseMoveThrowsIsSentTheNextTime) {
  Chan<Stubborn> channel(1);
  for (int throws_in = 1; throws_in <= 2; ++throws_in) {
    Selector selector;
    selector.send(channel, Stubborn(3));
    selector.timeout(24h);
    Stubborn::throws_in = throws_in;
    EXPECT_THROW(selector.select(), std::runtime_error);
    Stubborn::throws_in = 0;
    EXPECT_EQ(selector.select(), 0u);
    std::optional<Stubborn> received = channel.recv();
    ASSERT_TRUE(received);
    EXPECT_EQ(received->value, 3);
  }
}

RT_TEST(Selector, ThatWasMovedFromHasNoCasesAndMayBeUsedAgain) {
  Chan<int> a(1);
  Selector one;
  one.recv(a);
  one.otherwise();
  Selector other = std::move(one);
  EXPECT_EQ(other.size(), 2u);
  EXPECT_EQ(one.size(), 0u);
  EXPECT_EQ(one.otherwise(), 0u);
  EXPECT_EQ(one.select(), 0u);
  one = std::move(other);
  EXPECT_EQ(one.size(), 2u);
  EXPECT_EQ(other.otherwise(), 0u);
  EXPECT_EQ(one.select(), 1u);
}

}  // namespace
}  // namespace magpie
