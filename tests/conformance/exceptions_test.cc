// exceptions_test.cc: the C++ runtime keeps exceptions per thread; here they belong to the
// goroutine, which may block while it handles or throws one and go on on another thread.
#include <atomic>
#include <exception>
#include <stdexcept>
#include <string>

#include "support/overtake.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using support::be_overtaken;
using support::kMany;

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

// Several after each other on one stack, and some on stacks of their own.
RT_TEST(Exceptions, WithAHandlerGoroutinesThatThrowAreUnwoundAndTheOthersGoOn) {
  static std::atomic<int> handled, unwound, ended;
  handled = unwound = ended = 0;
  struct Guard {
    ~Guard() {
      yield();
      ++unwound;
    }
  };
  on_uncaught([](std::exception_ptr error) {
    EXPECT_EQ(std::current_exception(), error);
    yield();
    EXPECT_THROW(std::rethrow_exception(error), std::runtime_error);
    ++handled;
  });
  constexpr int kThrowing = 60;
  WaitGroup others;
  for (int i = 0; i < kThrowing; ++i) {
    const std::size_t stack_size = i % 3 == 0 ? 128 * 1024 : 0;
    go(GoOptions{.stack_size = stack_size}, [i] {
      Guard guard;
      if (i % 2 == 0) yield();
      throw std::runtime_error("thrown");
    });
    others.go([] {
      yield();
      ++ended;
    });
  }
  others.wait();
  EXPECT_TRUE(support::eventually([] { return handled == kThrowing; }));
  EXPECT_EQ(unwound.load(), kThrowing);
  EXPECT_EQ(ended.load(), kThrowing);
  EXPECT_TRUE(support::eventually([] { return num_goroutines() == 1; }));
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  on_uncaught({});
}

TEST(Exceptions, OneThatLeavesMainLeavesRun) {
  EXPECT_THROW(run([] { throw std::out_of_range("main's"); }), std::out_of_range);
  EXPECT_EQ(run([] { return 7; }), 7);  // and nothing is broken afterwards
}

}  // namespace
}  // namespace magpie
