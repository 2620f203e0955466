// defer_test.cc: functions that are called at the end of a scope.

#include <magpie/magpie.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "support/rt_test.h"

namespace magpie {
namespace {

RT_TEST(Defer, CallsAtTheEndOfTheScopeInReverseOrder) {
  std::vector<int> calls;
  {
    Defer first([&] { calls.push_back(1); });
    Defer second([&] { calls.push_back(2); });
    EXPECT_TRUE(calls.empty());
  }
  EXPECT_EQ(calls, (std::vector{2, 1}));
}

RT_TEST(Defer, CallsWhenAnExceptionLeavesTheScopeAndMayBlockThere) {
  Chan<int> calls;
  auto failing = spawn([=] {
    Defer tell([=] { calls.send(7); });
    throw std::runtime_error("left");
  });
  EXPECT_EQ(calls.recv(), 7);
  EXPECT_THROW(failing.join(), std::runtime_error);
}

RT_TEST(Defer, IsNotCalledOnceDismissed) {
  bool called = false;
  {
    Defer undo([&called, owned = std::make_unique<int>(1)] { called = true; });
    undo.dismiss();
  }
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace magpie
