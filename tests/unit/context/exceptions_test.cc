// exceptions_test.cc: C++ exceptions and unwinders on prepared stacks.

#include "context/exceptions.h"

#include <execinfo.h>
#include <gtest/gtest.h>
#include <unwind.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "side.h"

namespace magpie::context {
namespace {

// Switches with the exception state of each side kept apart, as the scheduler does.
void switch_with_exceptions(Side& from, Side& to) {
  const ExceptionState mine = std::exchange(*thread_exception_state(), {});
  switch_sides(from, to, nullptr);
  *thread_exception_state() = mine;
}

TEST(Exceptions, AreThrownThroughFramesOfAPreparedStackAndCaughtThere) {
  Side here;
  std::string caught;
  bool unwound = false;
  Side there([&](void*) {
    struct OnUnwind {
      bool& flag;
      ~OnUnwind() { flag = true; }
    };
    try {
      OnUnwind frame{unwound};
      throw std::runtime_error("far from home");
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
  });
  switch_sides(here, there, nullptr);
  EXPECT_TRUE(unwound);
  EXPECT_EQ(caught, "far from home");
}

TEST(Exceptions, ASideMayBeLeftInsideACatchBlockWhileTheOtherThrowsAndCatches) {
  Side here;
  std::string rethrown;
  Side* there_at = nullptr;
  Side there([&](void*) {
    try {
      throw std::runtime_error("theirs");
    } catch (...) {
      switch_with_exceptions(*there_at, here);
      try {
        throw;  // must be theirs, not ours
      } catch (const std::exception& error) {
        rethrown = error.what();
      }
    }
  });
  there_at = &there;

  try {
    throw std::runtime_error("ours");
  } catch (...) {
    switch_with_exceptions(here, there);
    EXPECT_THROW(throw std::logic_error("another"), std::logic_error);
    try {
      throw;
    } catch (const std::exception& error) {
      EXPECT_STREQ(error.what(), "ours");
    }
  }
  EXPECT_EQ(std::current_exception(), nullptr);
  switch_with_exceptions(here, there);
  EXPECT_EQ(rethrown, "theirs");
  EXPECT_EQ(std::current_exception(), nullptr);
}

TEST(Exceptions, ASideMayBeLeftWhileItUnwindsAndTheCountOfExceptionsInFlightIsItsOwn) {
  Side here;
  std::vector<int> counts_there;
  Side* there_at = nullptr;
  Side there([&](void*) {
    struct LeavesWhenDestroyed {
      std::vector<int>& counts;
      Side& from;
      Side& to;
      ~LeavesWhenDestroyed() {
        counts.push_back(std::uncaught_exceptions());
        switch_with_exceptions(from, to);
        counts.push_back(std::uncaught_exceptions());
      }
    };
    try {
      LeavesWhenDestroyed frame{counts_there, *there_at, here};
      throw 1;
    } catch (int) {
      counts_there.push_back(std::uncaught_exceptions());
    }
  });
  there_at = &there;
  switch_with_exceptions(here, there);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  switch_with_exceptions(here, there);
  EXPECT_EQ(counts_there, (std::vector<int>{1, 1, 0}));
}

TEST(Exceptions, OneThatNobodyCatchesOnAPreparedStackTerminatesInsteadOfRunningOffItsEnd) {
  EXPECT_EXIT(
      {
        std::set_terminate([] {
          fputs("terminated\n", stderr);
          _exit(7);
        });
        Side here;
        Side there([](void*) { throw 1; });
        switch_sides(here, there, nullptr);
      },
      testing::ExitedWithCode(7), "terminated");
}

struct Walk {
  std::vector<std::uintptr_t> functions;  // where each frame's function begins
};

_Unwind_Reason_Code note_frame(_Unwind_Context* context, void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  if (_Unwind_GetIP(context) == 0) return _URC_NO_REASON;  // the end
  auto* at = reinterpret_cast<void*>(_Unwind_GetIP(context) - 1);
  walk.functions.push_back(reinterpret_cast<std::uintptr_t>(_Unwind_FindEnclosingFunction(at)));
  return walk.functions.size() < 1000 ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

TEST(Unwinding, APreparedStackEndsCleanlyRightAboveItsEntry) {
  Side here;
  Walk walk;
  _Unwind_Reason_Code end = _URC_NO_REASON;
  Side there([&](void*) { end = _Unwind_Backtrace(note_frame, &walk); });
  switch_sides(here, there, nullptr);
  EXPECT_EQ(end, _URC_END_OF_STACK);
  const auto entry = reinterpret_cast<std::uintptr_t>(Side::entry());
  const auto found = std::find(walk.functions.begin(), walk.functions.end(), entry);
  ASSERT_NE(found, walk.functions.end());
  EXPECT_LE(walk.functions.end() - found, 2);  // the entry, and the code that called it
}

TEST(Unwinding, BacktraceOnAPreparedStackReturnsAFewFrames) {
  Side here;
  int frames = 0;
  Side there([&](void*) {
    void* addresses[256];
    frames = backtrace(addresses, 256);
  });
  switch_sides(here, there, nullptr);
  EXPECT_GT(frames, 1);
  EXPECT_LT(frames, 30);
}

}  // namespace
}  // namespace magpie::context
