// hazards_test.cc: what C++ keeps per thread, and what a goroutine may do with it: exceptions, floating-point modes,
// thread_locals, goroutine-local values, and the end of its stack.

#include <execinfo.h>
#include <unwind.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cfenv>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/rt_test.h"

namespace magpie {
namespace {

constexpr int kMany = 300;

// Lets others run often enough that goroutines overtake each other and change threads.
void be_overtaken() {
  for (int i = 0; i < 5; ++i) yield();
}

// ---- exceptions

RT_TEST(Exceptions, AGoroutineMayBlockInsideCatchAndItsExceptionStaysItsOwn) {
  std::atomic<int> wrong{0};
  WaitGroup all;
  for (int i = 0; i < kMany; ++i) {
    all.go([&wrong, i] {
      const std::string mine = std::to_string(i);
      try {
        throw std::runtime_error(mine);
      } catch (const std::runtime_error& error) {
        for (int turn = 0; turn < 10; ++turn) {
          yield();
          if (error.what() != mine) ++wrong;
          if (std::current_exception() == nullptr) ++wrong;
        }
        try {
          throw;
        } catch (const std::exception& again) {
          if (again.what() != mine) ++wrong;
        }
      }
      if (std::current_exception() != nullptr) ++wrong;
    });
  }
  all.wait();
  EXPECT_EQ(wrong, 0);
}

// Blocks while the stack is being unwound.
struct YieldsWhenDestroyed {
  std::atomic<int>& wrong;
  int in_flight_outside;
  ~YieldsWhenDestroyed() {
    for (int turn = 0; turn < 5; ++turn) {
      if (std::uncaught_exceptions() != in_flight_outside + 1) ++wrong;
      yield();
    }
    // Exceptions may come and go inside the destructor too.
    try {
      throw std::logic_error("inner");
    } catch (const std::logic_error&) {
      yield();
      if (std::uncaught_exceptions() != in_flight_outside + 1) ++wrong;
    }
  }
};

RT_TEST(Exceptions, AGoroutineMayBlockInADestructorDuringUnwindingAndTheCountInFlightStaysItsOwn) {
  std::atomic<int> wrong{0};
  WaitGroup all;
  for (int i = 0; i < kMany; ++i) {
    all.go([&wrong, i] {
      try {
        YieldsWhenDestroyed outer{wrong, 0};
        if (std::uncaught_exceptions() != 0) ++wrong;
        throw i;
      } catch (int caught) {
        if (caught != i) ++wrong;
        if (std::uncaught_exceptions() != 0) ++wrong;
      }
    });
  }
  all.wait();
  EXPECT_EQ(wrong, 0);
}

// Throws from inside handlers, `depth` deep, and blocks at each level.
void nest(int depth, int owner, std::atomic<int>& wrong) {
  const std::string mine = std::to_string(owner) + "/" + std::to_string(depth);
  try {
    throw std::runtime_error(mine);
  } catch (const std::runtime_error&) {
    yield();
    if (depth > 0) nest(depth - 1, owner, wrong);
    yield();
    try {
      std::rethrow_exception(std::current_exception());
    } catch (const std::exception& error) {
      if (error.what() != mine) ++wrong;
    }
  }
}

RT_TEST(Exceptions, NestedHandlersThatBlockUnwindInTheRightOrder) {
  std::atomic<int> wrong{0};
  WaitGroup all;
  for (int i = 0; i < kMany; ++i) all.go([&wrong, i] { nest(6, i, wrong); });
  all.wait();
  EXPECT_EQ(wrong, 0);
}

RT_TEST(Exceptions, AGoroutineStartedInsideACatchBlockDoesNotSeeTheStartersException) {
  std::atomic<int> seen{0};
  try {
    throw std::runtime_error("the starter's");
  } catch (...) {
    // Both ways to run: in place by the joiner, and by the loop.
    spawn([&] { seen += std::current_exception() != nullptr; }).join();
    WaitGroup all;
    for (int i = 0; i < 10; ++i) {
      all.go([&] {
        yield();
        seen += std::current_exception() != nullptr;
        seen += std::uncaught_exceptions();
      });
    }
    all.wait();
    EXPECT_NE(std::current_exception(), nullptr);
  }
  EXPECT_EQ(seen, 0);
}

RT_TEST(Exceptions, CrossFromAGoroutineToItsJoinerUnchanged) {
  auto failing = spawn([]() -> int {
    yield();
    throw std::out_of_range("too far");
  });
  try {
    failing.join();
    ADD_FAILURE() << "join() returned";
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(), "too far");
  }
  EXPECT_FALSE(failing.joinable());
}

RT_TEST(Exceptions, JoiningInsideACatchBlockKeepsTheJoinersException) {
  try {
    throw std::runtime_error("outer");
  } catch (...) {
    auto failing = spawn([] {
      be_overtaken();
      throw std::logic_error("inner");
    });
    EXPECT_THROW(failing.join(), std::logic_error);
    try {
      throw;
    } catch (const std::exception& error) {
      EXPECT_STREQ(error.what(), "outer");
    }
  }
  EXPECT_EQ(std::current_exception(), nullptr);
}

TEST(Exceptions, RunMayBeCalledInsideACatchBlockAndTheCallersExceptionIsThereAfterwards) {
  for (const int procs : support::kProcsOfEachTest) {
    try {
      throw std::runtime_error("outer");
    } catch (...) {
      run(Options{.procs = procs}, [] {
        EXPECT_EQ(std::current_exception(), nullptr);
        WaitGroup all;
        for (int i = 0; i < 20; ++i) all.go(be_overtaken);
        all.wait();
      });
      try {
        throw;
      } catch (const std::exception& error) {
        EXPECT_STREQ(error.what(), "outer");
      }
    }
    EXPECT_EQ(std::current_exception(), nullptr);
  }
}

TEST(Exceptions, OneThatLeavesMainLeavesRun) {
  EXPECT_THROW(run([] { throw std::out_of_range("main's"); }), std::out_of_range);
  EXPECT_EQ(run([] { return 7; }), 7);  // and nothing is broken afterwards
}

// ---- floating point

RT_TEST(FloatingPoint, ARoundingModeStaysWithItsGoroutineAcrossYields) {
  constexpr std::array kModes = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  std::atomic<int> wrong{0};
  WaitGroup all;
  for (int i = 0; i < kMany; ++i) {
    all.go([&, mode = kModes[static_cast<std::size_t>(i) % kModes.size()]] {
      if (std::fegetround() != FE_TONEAREST) ++wrong;  // as every goroutine starts
      std::fesetround(mode);
      for (int turn = 0; turn < 10; ++turn) {
        yield();
        if (std::fegetround() != mode) ++wrong;
      }
    });
  }
  all.wait();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

RT_TEST(FloatingPoint, ARoundingModeThatAGoroutineLeavesBehindReachesNobody) {
  std::atomic<int> wrong{0};
  for (int round = 0; round < 50; ++round) {
    WaitGroup all;
    all.go([] { std::fesetround(FE_UPWARD); });  // ends without ever blocking
    all.go([&] { wrong += std::fegetround() != FE_TONEAREST; });
    all.wait();
    // Run in place by the joiner.
    spawn([] { std::fesetround(FE_DOWNWARD); }).join();
    wrong += std::fegetround() != FE_TONEAREST;
  }
  EXPECT_EQ(wrong, 0);
}

RT_TEST(FloatingPoint, AJoinersRoundingModeSurvivesAGoroutineThatItRunsInPlace) {
  std::fesetround(FE_UPWARD);
  int inside = -1;
  spawn([&] {
    inside = std::fegetround();
    std::fesetround(FE_TOWARDZERO);
    be_overtaken();
  }).join();
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(inside, FE_TONEAREST);
}

TEST(FloatingPoint, RunKeepsItsCallersRoundingMode) {
  std::fesetround(FE_DOWNWARD);
  int inside = -1;
  run(Options{.procs = 2}, [&] {
    inside = std::fegetround();
    std::fesetround(FE_UPWARD);
    be_overtaken();
  });
  const int after = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(inside, FE_TONEAREST);
  EXPECT_EQ(after, FE_DOWNWARD);
}

// ---- what belongs to the thread

thread_local int visits = 0;

// Not inlined, and not merged: the compiler must not keep the address of a thread_local across a switch.
void forget_addresses() { asm volatile("" ::: "memory"); }
[[gnu::noinline]] int* my_visits() {
  forget_addresses();
  return &visits;
}
[[gnu::noinline]] void set_errno(int value) {
  forget_addresses();
  errno = value;
}
[[gnu::noinline]] int get_errno() {
  forget_addresses();
  return errno;
}

RT_TEST(ThreadLocals, BelongToTheThreadThatAGoroutineRunsOnNow) {
  std::mutex lock;
  std::set<int*> addresses;
  WaitGroup all;
  for (int i = 0; i < 50; ++i) {
    all.go([&] {
      for (int turn = 0; turn < 10; ++turn) {
        {
          std::lock_guard hold(lock);  // held without blocking in the runtime
          addresses.insert(my_visits());
        }
        yield();
      }
    });
  }
  all.wait();
  EXPECT_LE(addresses.size(), static_cast<std::size_t>(num_threads()));
}

TEST(ThreadLocals, AtOneProcTheThreadKeepsThemSoGoroutinesShareThemAndErrno) {
  run(Options{.procs = 1, .max_threads = 1}, [] {
    *my_visits() = 41;
    set_errno(0);
    WaitGroup all;
    all.go([] {
      ++*my_visits();
      set_errno(EDOM);
    });
    all.wait();
    EXPECT_EQ(*my_visits(), 42);
    EXPECT_EQ(get_errno(), EDOM);  // so errno says nothing after a call that may block
  });
}

// ---- goroutine-local values

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

// ---- closures and results

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

// ---- the end of the stack

struct Frames {
  int count = 0;
};

_Unwind_Reason_Code count_frame(_Unwind_Context*, void* frames) {
  return ++static_cast<Frames*>(frames)->count < 1000 ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

void expect_clean_end_of_stack() {
  Frames frames;
  EXPECT_EQ(_Unwind_Backtrace(count_frame, &frames), _URC_END_OF_STACK);
  EXPECT_GT(frames.count, 2);
  EXPECT_LT(frames.count, 100);
  void* addresses[256];
  EXPECT_LT(backtrace(addresses, 256), 100);
}

RT_TEST(EndOfStack, UnwindersStopCleanlyInFreshParkedInPlaceAndOwnStackGoroutines) {
  expect_clean_end_of_stack();
  WaitGroup all;
  all.go(expect_clean_end_of_stack);
  all.go([] {
    be_overtaken();
    expect_clean_end_of_stack();
  });
  all.wait();
  spawn(expect_clean_end_of_stack).join();
  spawn(GoOptions{.stack_size = 1 << 20}, [] {
    be_overtaken();
    expect_clean_end_of_stack();
  }).join();
}

// Goes down so many frames of about a kilobyte.
[[gnu::noinline]] int go_down(int frames) {
  volatile char ballast[1000];
  ballast[0] = static_cast<char>(frames);
  return frames == 0 ? ballast[0] : go_down(frames - 1) + ballast[0];
}

RT_TEST(StackSizes, AGoroutineGetsTheStackItAskedForAndAFailureThereIsCaughtAsAnywhere) {
  EXPECT_NO_THROW(spawn(GoOptions{.stack_size = 8 << 20}, [] {
                    go_down(2000);
                    be_overtaken();
                  }).join());
  EXPECT_THROW(spawn(GoOptions{.stack_size = 1 << 20},
                     [] {
                       be_overtaken();
                       throw std::logic_error("deep");
                     })
                   .join(),
               std::logic_error);
}

RT_TEST(StackSizes, ManyGoroutinesWithStacksOfTheirOwnComeAndGo) {
  std::atomic<int> done{0};
  WaitGroup all;
  for (int i = 0; i < 200; ++i) {
    all.add(1);
    go(GoOptions{.stack_size = 512 * 1024}, [&] {
      go_down(100);
      be_overtaken();
      ++done;
      all.done();
    });
  }
  all.wait();
  EXPECT_EQ(done, 200);
}

}  // namespace
}  // namespace magpie
