// closures_test.cc: what a goroutine is given and what it leaves behind: where it may live, and
// when it is destroyed.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/overtake.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using support::be_overtaken;

RT_TEST(Closures, OfAnySizeArriveWhole) {
  std::atomic<int> right{0};
  WaitGroup all;
  std::array<std::uint64_t, 2> small{1, 2};
  std::array<std::uint64_t, 500> large{};
  large.front() = 1, large.back() = 500;
  struct alignas(128) Aligned {
    std::uint64_t value = 9;
  } aligned;
  all.go([&right, small] { right += small[0] == 1 && small[1] == 2; });
  all.go([&right, large] { right += large.front() == 1 && large.back() == 500; });
  all.go([&right, aligned] {
    right += aligned.value == 9 && reinterpret_cast<std::uintptr_t>(&aligned) % 128 == 0;
  });
  all.wait();
  EXPECT_EQ(right, 3);
  EXPECT_EQ(spawn([large] { return large.back(); }).join(), 500u);
  EXPECT_EQ(spawn([large] { return large; }).join(), large);
}

RT_TEST(Closures, AndArgumentsMayBeMoveOnly) {
  auto text = std::make_unique<std::string>("moved");
  auto handle = spawn([text = std::move(text)] { return *text; });
  EXPECT_EQ(handle.join(), "moved");
  auto number = std::make_unique<int>(6);
  EXPECT_EQ(spawn([](std::unique_ptr<int> given, int factor) { return *given * factor; },
                  std::move(number), 7)
                .join(),
            42);
}

RT_TEST(Closures, AreDestroyedBeforeTheJoinerGoesOn) {
  auto alive = std::make_shared<int>(0);
  auto handle = spawn([alive] { be_overtaken(); });
  handle.join();
  EXPECT_EQ(alive.use_count(), 1);
  std::array<char, 400> ballast{};
  spawn([alive, ballast] { return ballast.size(); }).join();
  EXPECT_EQ(alive.use_count(), 1);
}

RT_TEST(Closures, OneWhoseCopyThrowsStartsNoGoroutine) {
  struct Thrower {
    Thrower() = default;
    Thrower(const Thrower&) { throw std::runtime_error("no copy"); }
    void operator()() const {}
  };
  Thrower thrower;
  const std::size_t before = num_goroutines();
  EXPECT_THROW(go(thrower), std::runtime_error);
  EXPECT_THROW((void)spawn(thrower), std::runtime_error);
  EXPECT_EQ(num_goroutines(), before);
  WaitGroup all;
  all.go([] {});
  all.wait();
}

RT_TEST(Results, MayBeMoveOnlyVoidOrReferences) {
  std::unique_ptr<int> moved = spawn([] { return std::make_unique<int>(3); }).join();
  EXPECT_EQ(*moved, 3);
  int there = 1;
  int& same = spawn([&there]() -> int& { return there; }).join();
  EXPECT_EQ(&same, &there);
  const std::string text = "text";
  const std::string& same_text = spawn([&text]() -> const std::string& { return text; }).join();
  EXPECT_EQ(&same_text, &text);
  static_assert(std::is_void_v<decltype(spawn([] {}).join())>);
  spawn([] {}).join();
}

RT_TEST(Results, MayBeConstant) {
  auto constant = [](const char* text) -> const std::string { return text; };
  EXPECT_EQ(spawn(constant, "joined").join(), "joined");
  EXPECT_EQ(spawn(constant, "in time").try_join_for(support::kGenerousLimit), "in time");
}

RT_TEST(Results, AGoroutineThatJoinsItselfIsToldSo) {
  JoinHandle<void> itself;
  Chan<void> is_stored, is_told;
  itself = spawn([&] {
    is_stored.recv();
    EXPECT_THROW(itself.join(), std::logic_error);
    EXPECT_FALSE(itself.joinable());
    is_told.send();
  });
  is_stored.send();
  is_told.recv();
}

RT_TEST(Results, OfDetachedGoroutinesAreDestroyedAndTheirDestructorsMayBlock) {
  static std::atomic<int> destroyed;
  destroyed = 0;
  struct Result {
    bool armed = true;
    Result() = default;
    Result(Result&& other) noexcept : armed(std::exchange(other.armed, false)) {}
    ~Result() {
      if (!armed) return;
      EXPECT_NE(goroutine_id(), 0u);
      be_overtaken();
      ++destroyed;
    }
  };
  for (int i = 0; i < 20; ++i) {
    spawn([] {
      be_overtaken();
      return Result();
    }).detach();
  }
  EXPECT_TRUE(support::eventually([] { return destroyed == 20; }));
}

RT_TEST(Results, AreDestroyedWithTheirHandleWhenNobodyTakesThem) {
  auto alive = std::make_shared<int>(0);
  {
    auto unused = spawn([alive] { return alive; });
    auto failing = spawn([]() -> int { throw std::runtime_error("swallowed"); });
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(Results, OfAGoroutineWhoseRunHasEndedCannotBeJoined) {
  JoinHandle<int> ended, dropped, parked;
  WaitGroup never;
  never.add(1);
  run(Options{.procs = 2}, [&] {
    ended = spawn([] { return 1; });
    while (num_goroutines() != 1) yield();
    parked = spawn([&never] {
      never.wait();
      return 2;
    });
    be_overtaken();
    dropped = spawn([] { return 3; });
  });
  EXPECT_THROW(ended.join(), std::logic_error);
  EXPECT_THROW(dropped.join(), std::logic_error);
  run([&] { EXPECT_THROW(parked.join(), std::logic_error); });  // nor inside a later run
  EXPECT_FALSE(parked.joinable());
}

TEST(Results, AHandleMayBeDestroyedAfterItsRunHasEnded) {
  JoinHandle<std::string> handle;
  run([&] { handle = spawn([] { return std::string(1000, 'x'); }); });
  run([moved = std::move(handle)]() mutable { moved = {}; });
}

}  // namespace
}  // namespace magpie
