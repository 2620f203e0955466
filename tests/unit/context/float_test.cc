// float_test.cc: rounding modes and exception masks belong to a side, status flags to the thread.

#include "context/float_control.h"

#include <gtest/gtest.h>

#include <cfenv>

#include "side.h"

namespace magpie::context {
namespace {

// Rounding as the processor does it: a third, times three, rounded each time.
double a_third() {
  volatile double one = 1.0, three = 3.0;
  return one / three;
}

class Float : public testing::Test {
 protected:
  ~Float() override { std::fesetenv(FE_DFL_ENV); }
};

TEST_F(Float, APreparedSideStartsWithTheDefaultsWhateverItsStarterUses) {
  Side here;
  int rounding_there = -1;
  Side there([&](void*) { rounding_there = std::fegetround(); });
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  switch_sides(here, there, nullptr);
  EXPECT_EQ(rounding_there, FE_TONEAREST);
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
}

TEST_F(Float, EachSideKeepsItsOwnRoundingMode) {
  Side here;
  double third_there = 0;
  int rounding_there = -1;
  Side* there_at = nullptr;
  Side there([&](void*) {
    std::fesetround(FE_UPWARD);
    switch_sides(*there_at, here, nullptr);
    third_there = a_third();
    rounding_there = std::fegetround();
  });
  there_at = &there;

  switch_sides(here, there, nullptr);
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  const double nearest = a_third();
  ASSERT_EQ(std::fesetround(FE_DOWNWARD), 0);
  switch_sides(here, there, nullptr);
  EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
  EXPECT_EQ(rounding_there, FE_UPWARD);
  EXPECT_GT(third_there, nearest);
}

TEST_F(Float, StatusFlagsSurviveASwitchBetweenSidesOfDifferentRounding) {
  Side here;
  int flags_there = 0;
  Side* there_at = nullptr;
  Side there([&](void*) {
    std::fesetround(FE_TOWARDZERO);
    std::feraiseexcept(FE_DIVBYZERO);
    switch_sides(*there_at, here, nullptr);
    flags_there = std::fetestexcept(FE_DIVBYZERO);
  });
  there_at = &there;
  std::feclearexcept(FE_ALL_EXCEPT);
  std::feraiseexcept(FE_OVERFLOW);
  switch_sides(here, there, nullptr);
  EXPECT_NE(std::fetestexcept(FE_OVERFLOW), 0);
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  switch_sides(here, there, nullptr);
  EXPECT_NE(flags_there, 0);
}

TEST_F(Float, RaisedStatusFlagsAreNotTakenForAChangedControlWord) {
  std::feclearexcept(FE_ALL_EXCEPT);
  EXPECT_TRUE(FloatControl().is_default());
  std::feraiseexcept(FE_INEXACT | FE_UNDERFLOW);
  EXPECT_TRUE(FloatControl().is_default());
}

TEST_F(Float, ARememberedControlWordCanBeRestored) {
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  const FloatControl upward;
  EXPECT_FALSE(upward.is_default());
  ASSERT_EQ(std::fesetround(FE_DOWNWARD), 0);
  upward.restore();
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
}

TEST_F(Float, ResettingGivesTheDefaultsBack) {
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  reset_float_control();
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  EXPECT_TRUE(FloatControl().is_default());
}

#if defined(__x86_64__)
TEST_F(Float, EachSideKeepsItsOwnTrapsAndFlushToZero) {
  Side here;
  int traps_there = 0;
  unsigned flush_there = 0;
  Side* there_at = nullptr;
  Side there([&](void*) {
    feenableexcept(FE_INVALID);
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8000);  // flush results to zero
    switch_sides(*there_at, here, nullptr);
    traps_there = fegetexcept();
    flush_there = __builtin_ia32_stmxcsr() & 0x8000;
    fedisableexcept(FE_ALL_EXCEPT);
  });
  there_at = &there;
  switch_sides(here, there, nullptr);
  EXPECT_EQ(fegetexcept(), 0);
  EXPECT_EQ(__builtin_ia32_stmxcsr() & 0x8000, 0u);
  switch_sides(here, there, nullptr);
  EXPECT_EQ(traps_there, FE_INVALID);
  EXPECT_NE(flush_there, 0u);
}

TEST_F(Float, TheOlderX87UnitRoundsAsTheSideSaid) {
  Side here;
  const auto x87_rounding = [] {
    std::uint16_t word;
    asm volatile("fnstcw %0" : "=m"(word));
    return word & 0x0C00;
  };
  int there_after = 0;
  Side* there_at = nullptr;
  Side there([&](void*) {
    std::fesetround(FE_UPWARD);
    switch_sides(*there_at, here, nullptr);
    there_after = x87_rounding();
  });
  there_at = &there;
  switch_sides(here, there, nullptr);
  EXPECT_EQ(x87_rounding(), 0);
  switch_sides(here, there, nullptr);
  EXPECT_EQ(there_after, 0x0800);
}
#endif

}  // namespace
}  // namespace magpie::context
