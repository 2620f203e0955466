// A P is taken from an M that is outside, and from no other.
#include <gtest/gtest.h>

#include "base/fence.h"
#include "sched/taking/grip.h"

namespace magpie::sched {
namespace {

class GripTest : public ::testing::Test {
 protected:
  GripTest() { base::prepare_fences(); }
  Grip grip;
};

TEST_F(GripTest, InsideItIsNotTaken) {
  EXPECT_TRUE(grip.is_inside());  // an M begins in its loop
  ASSERT_TRUE(grip.ask());
  EXPECT_FALSE(grip.is_outside_for_taker());
  grip.withdraw();
  EXPECT_FALSE(grip.is_taken());
}

TEST_F(GripTest, OutsideItIsTakenAndTheNextEntryFindsOut) {
  grip.leave();
  ASSERT_TRUE(grip.ask());
  ASSERT_TRUE(grip.is_outside_for_taker());
  ASSERT_TRUE(grip.confirm());
  EXPECT_TRUE(grip.is_taken());
  EXPECT_FALSE(grip.enter());
  EXPECT_FALSE(grip.keep());
  grip.set_own();
  grip.leave();
  EXPECT_TRUE(grip.enter());
}

TEST_F(GripTest, WhoEntersWhileItIsAskedForKeepsIt) {
  grip.leave();
  ASSERT_TRUE(grip.ask());
  ASSERT_TRUE(grip.is_outside_for_taker());
  EXPECT_FALSE(grip.enter());
  EXPECT_TRUE(grip.keep());
  EXPECT_FALSE(grip.confirm());
  EXPECT_FALSE(grip.is_taken());
}

TEST_F(GripTest, WhoHasNoneCannotBeAsked) {
  grip.leave();
  ASSERT_TRUE(grip.ask() && grip.is_outside_for_taker() && grip.confirm());
  EXPECT_FALSE(grip.ask());
}

TEST_F(GripTest, TheShortWayIsForThoseOutsideWhomNobodyAsks) {
  EXPECT_FALSE(grip.try_enter());  // inside already
  EXPECT_TRUE(grip.is_inside());
  grip.leave();
  EXPECT_TRUE(grip.try_enter());
  grip.leave();
  ASSERT_TRUE(grip.ask());
  EXPECT_FALSE(grip.try_enter());
  EXPECT_FALSE(grip.is_inside());
}

}  // namespace
}  // namespace magpie::sched
