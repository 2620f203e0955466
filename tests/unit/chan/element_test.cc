// element_test.cc: what kinds of values a channel carries, and what happens to them.

#include <magpie/magpie.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/sanitizer.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using support::waiting_is;

// Counts its objects.
struct Counted {
  explicit Counted(int its) : value(its) { ++alive; }
  Counted(Counted&& other) noexcept : value(std::exchange(other.value, -1)) { ++alive; }
  Counted& operator=(Counted&&) = delete;
  ~Counted() { --alive; }
  int value;
  static inline std::atomic<int> alive{0};
};

// Sends three values one way or the other and checks that they arrive and are destroyed.
template <class T, class Make, class Check>
void pass_on(Make make, Check check) {
  for (std::size_t capacity : {0, 1, 3}) {
    Chan<T> c(capacity);
    auto sender = spawn([&] {
      for (int i = 0; i < 3; ++i) c.send(make(i));
    });
    for (int i = 0; i < 3; ++i) {
      auto got = c.recv();
      ASSERT_TRUE(got.has_value());
      check(*got, i);
    }
    sender.join();
    // The other way round: receivers wait first.
    auto receiver = spawn([&] {
      for (int i = 0; i < 3; ++i) {
        auto got = c.recv();
        check(*got, i);
      }
    });
    ASSERT_TRUE(waiting_is(1));
    for (int i = 0; i < 3; ++i) c.send(make(i));
    receiver.join();
  }
}

RT_TEST(Elements, NumbersOfEverySize) {
  pass_on<char>([](int i) { return static_cast<char>(i); }, [](char v, int i) { EXPECT_EQ(v, i); });
  pass_on<std::int16_t>([](int i) { return static_cast<std::int16_t>(i); },
                        [](std::int16_t v, int i) { EXPECT_EQ(v, i); });
  pass_on<int>([](int i) { return i; }, [](int v, int i) { EXPECT_EQ(v, i); });
  pass_on<double>([](int i) { return i + 0.5; }, [](double v, int i) { EXPECT_EQ(v, i + 0.5); });
  using Three = std::array<int, 3>;
  pass_on<Three>(
      [](int i) {
        return Three{i, i, i};
      },
      [](Three v, int i) {
        EXPECT_EQ(v, (Three{i, i, i}));
      });
}

RT_TEST(Elements, Strings) {
  auto text = [](int i) { return std::string(100, static_cast<char>('a' + i)); };
  pass_on<std::string>(text, [&](const std::string& v, int i) { EXPECT_EQ(v, text(i)); });
}

RT_TEST(Elements, MoveOnlyValues) {
  pass_on<std::unique_ptr<int>>([](int i) { return std::make_unique<int>(i); },
                                [](std::unique_ptr<int>& v, int i) { EXPECT_EQ(*v, i); });
}

struct alignas(256) OverAligned {
  int value = 0;
};

RT_TEST(Elements, OverAlignedValuesStayAligned) {
  pass_on<OverAligned>([](int i) { return OverAligned{i}; },
                       [](OverAligned& v, int i) {
                         EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&v) % 256, 0u);
                         EXPECT_EQ(v.value, i);
                       });
}

RT_TEST(Elements, LargeValues) {
  using Large = std::array<int, 10'000>;
  pass_on<Large>(
      [](int i) {
        Large large{};
        large.front() = large.back() = i;
        return large;
      },
      [](Large& v, int i) {
        EXPECT_EQ(v.front(), i);
        EXPECT_EQ(v.back(), i);
      });
}

// As in Go: a request with the channel for others of its kind.
struct Recursive {
  int number = 0;
  Chan<Recursive> answers = Chan<Recursive>::nil();
};

RT_TEST(Elements, ATypeMayHaveAChannelOfItself) {
  Chan<Recursive> requests(1), answers(1);
  requests.send({1, answers});
  Recursive request = *requests.recv();
  request.answers.send({request.number + 1});
  EXPECT_EQ(answers.recv()->number, 2);
}

RT_TEST(Elements, EveryValueIsDestroyedOnce) {
  pass_on<Counted>([](int i) { return Counted(i); },
                   [](Counted& v, int i) { EXPECT_EQ(v.value, i); });
  EXPECT_EQ(Counted::alive, 0);
}

RT_TEST(Elements, ValuesThatAreStillInsideAreDestroyedWithTheLastHandle) {
  {
    Chan<Counted> c(4);
    for (int i = 0; i < 3; ++i) c.send(Counted(i));
    (void)c.recv();  // so that the ring has turned
    for (int i = 0; i < 2; ++i) c.send(Counted(i));
    Chan<Counted> copy = c;
    EXPECT_EQ(Counted::alive, 4);
  }
  EXPECT_EQ(Counted::alive, 0);
}

RT_TEST(Elements, AValueThatCouldNotBeSentIsDestroyed) {
  Chan<Counted> c;
  auto sender = spawn([&] { c.send(Counted(1)); });
  ASSERT_TRUE(waiting_is(1));
  c.close();
  EXPECT_THROW(sender.join(), ClosedChannel);
  EXPECT_THROW(c.send(Counted(2)), ClosedChannel);
  EXPECT_EQ(Counted::alive, 0);
}

// Its address is not what & says.
struct Disguised {
  int value;
  void operator&() const {}  // NOLINT: just that
};

RT_TEST(Elements, ATypeMayHaveAnAddressOperatorOfItsOwn) {
  pass_on<Disguised>([](int i) { return Disguised{i}; },
                     [](const Disguised& got, int i) { EXPECT_EQ(got.value, i); });
}

// ---- moves that throw

// Throws at the nth move from now.
struct Fragile {
  explicit Fragile(int its) : value(its) { ++alive; }
  Fragile(Fragile&& other) : value(other.value) {
    if (moves_left-- == 0) throw std::runtime_error("no move");
    other.value = -1;
    ++alive;
  }
  Fragile& operator=(Fragile&& other) {
    value = std::exchange(other.value, -1);
    return *this;
  }
  ~Fragile() { --alive; }
  int value;
  static inline int moves_left = 1'000'000;
  static inline int alive = 0;
};

RT_TEST(ThrowingMoves, AMoveThatThrowsInTheSenderLeavesTheChannelAsItWas) {
  Chan<Fragile> c(2);
  Fragile value(7);
  Fragile::moves_left = 0;
  EXPECT_THROW((void)c.try_send(value), std::runtime_error);
  EXPECT_EQ(c.size(), 0u);
  EXPECT_EQ(value.value, 7);
  Fragile::moves_left = 1'000'000;
  EXPECT_TRUE(c.try_send(value));
  EXPECT_EQ(c.recv()->value, 7);
}

RT_TEST(ThrowingMoves, AMoveThatThrowsInTheSenderIsNotNoticedByTheReceiver) {
  Chan<Fragile> c;
  auto receiver = spawn([&] { return c.recv()->value; });
  ASSERT_TRUE(waiting_is(1));
  Fragile value(7);
  Fragile::moves_left = 0;
  EXPECT_THROW((void)c.try_send(value), std::runtime_error);
  Fragile::moves_left = 1'000'000;
  EXPECT_EQ(stats().waiting, 1u);
  EXPECT_TRUE(c.try_send(value));
  EXPECT_EQ(receiver.join(), 7);
}

RT_TEST(ThrowingMoves, AMoveThatThrowsInTheReceiverLosesThatValueOnly) {
  Chan<Fragile> c(2);
  c.send(Fragile(1));
  c.send(Fragile(2));
  Fragile::moves_left = 0;
  EXPECT_THROW((void)c.recv(), std::runtime_error);
  Fragile::moves_left = 1'000'000;
  EXPECT_EQ(c.size(), 1u);
  EXPECT_EQ(c.recv()->value, 2);
  EXPECT_EQ(Fragile::alive, 0);
}

RT_TEST(ThrowingMoves, ARefusedTrySendLeavesTheValue) {
  Chan<Fragile> c;
  Fragile value(7);
  EXPECT_FALSE(c.try_send(value));
  EXPECT_EQ(value.value, 7);
  c.close();
  EXPECT_THROW((void)c.try_send(value), ClosedChannel);
  EXPECT_EQ(value.value, 7);
}

// Cannot be assigned without an exception, but constructed.
struct Unassignable {
  explicit Unassignable(int its) : value(its) {}
  Unassignable(Unassignable&& other) noexcept : value(std::exchange(other.value, -1)) {}
  Unassignable& operator=(Unassignable&&) { throw std::runtime_error("no assignment"); }
  ~Unassignable() {}
  int value;
};

RT_TEST(ThrowingMoves, AValueThatIsNotSentComesBackWithoutAnAssignment) {
  Chan<Unassignable> c;
  Unassignable value(7);
  Context over = Context::background().with_timeout(std::chrono::milliseconds(1));
  std::error_code error;
  EXPECT_FALSE(c.send(over, std::move(value), error));
  EXPECT_EQ(value.value, 7);
  c.close();
  EXPECT_THROW((void)c.try_send(value), ClosedChannel);
  EXPECT_EQ(value.value, 7);
}

RT_TEST(ThrowingMoves, ASelectSendsThemToo) {
  {
    Chan<Fragile> c(1), full;
    EXPECT_EQ(select(on_send(full, Fragile(1)), on_send(c, Fragile(2))), 1u);
    int got = 0;
    select(on_recv(c, [&](std::optional<Fragile> v) { got = v ? v->value : 0; }), on_recv(full));
    EXPECT_EQ(got, 2);
  }
  EXPECT_EQ(Fragile::alive, 0);
}

// ---- capacities

TEST(Capacities, AHugeCapacityIsRefusedClearly) {
  EXPECT_THROW(Chan<int>{std::numeric_limits<std::size_t>::max()}, std::length_error);
  EXPECT_THROW(Chan<int>{std::numeric_limits<std::size_t>::max() / 4}, std::length_error);
#if !defined(MAGPIE_ASAN) && !defined(MAGPIE_TSAN)  // those end the program instead
  EXPECT_THROW(Chan<int>{std::numeric_limits<std::size_t>::max() / 16}, std::bad_alloc);
#endif
}

TEST(Capacities, SignalsNeedNoMemory) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  Chan<void> c(kMost);
  EXPECT_EQ(c.capacity(), kMost);
  for (int i = 0; i < 1000; ++i) c.send();
  EXPECT_EQ(c.size(), 1000u);
}

TEST(Capacities, AMillionValuesFit) {
  Chan<int> c(1'000'000);
  int sent = 0, received = 0;
  while (c.try_send(sent)) ++sent;
  EXPECT_EQ(sent, 1'000'000);
  while (c.try_recv() == received) ++received;
  EXPECT_EQ(received, 1'000'000);
}

// A thread gives its spare channels back before the destructors of its older thread_locals run.
TEST(Capacities, ChannelsThatAreDroppedWhenTheirThreadHasNearlyEndedAreUsedAgain) {
  std::set<const void*> used;
  for (int round = 0; round < 300; ++round) {
    std::thread([&] {
      thread_local std::vector<Chan<int>> dropped_late;
      dropped_late.reserve(1);  // it is older than the first channel
      dropped_late.emplace_back();
      used.insert(detail::ChanAccess::core(dropped_late.back()));
    }).join();
  }
  EXPECT_LT(used.size(), 200u);
}

TEST(Capacities, ChannelsMayBeMadeAndDroppedByDifferentThreads) {
  for (int round = 0; round < 20; ++round) {
    std::vector<Chan<std::string>> channels;
    std::thread([&] {
      for (int i = 0; i < 200; ++i) {
        channels.emplace_back(1);
        channels.back().send("value");
      }
    }).join();
    for (auto& c : channels) ASSERT_EQ(c.recv(), "value");
  }
}

// ---- its address

struct Shy {
  explicit Shy(int its) : value(its) {}
  void operator&() const = delete;
  bool operator==(const Shy&) const = default;
  int value;
};

RT_TEST(Element, MayOverloadTheAddressOperator) {
  Chan<Shy> channel(2);
  channel.send(Shy(7));
  EXPECT_EQ(select(on_send(channel, Shy(8)), otherwise()), 0u);
  auto each = channel.begin();
  EXPECT_EQ(each->value, 7);
  EXPECT_EQ(channel.recv()->value, 8);
  Local<Shy> local(Shy(9));
  EXPECT_EQ(local->value, 9);
  Context context = Context::background().with_value(1, Shy(10));
  EXPECT_EQ(context.value<Shy>(1)->value, 10);
  EXPECT_EQ(spawn([] { return Shy(11); }).join().value, 11);
}

}  // namespace
}  // namespace magpie
