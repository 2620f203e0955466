// check_test.cc: the last words of a program that cannot go on.

#include "base/check.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace magpie::base {
namespace {

TEST(Fatal, PrintsItsMessageAfterOurNameAndAborts) {
  EXPECT_EXIT(fatal("goroutine %d of %s", 7, "many"), testing::KilledBySignal(SIGABRT),
              "^magpie: goroutine 7 of many\n");
}

TEST(Fatal, CutsAMessageThatIsTooLongAndStillEndsTheLine) {
  const std::string long_text(5000, 'x');
  EXPECT_EXIT(fatal("%s", long_text.c_str()), testing::KilledBySignal(SIGABRT), "^magpie: x+\n");
}

TEST(Warn, PrintsALineAndGoesOn) {
  EXPECT_EXIT(
      {
        warn("%d threads", 3);
        _exit(5);
      },
      testing::ExitedWithCode(5), "^magpie: 3 threads\n$");
}

TEST(Check, AFactThatHoldsCostsNothingAndSaysNothing) {
  int evaluated = 0;
  MAGPIE_CHECK(++evaluated == 1);
  EXPECT_EQ(evaluated, 1);
}

TEST(Check, AFactThatDoesNotHoldIsNamedWithItsPlace) {
  int two = 2;
  EXPECT_EXIT(MAGPIE_CHECK(two + two == 5), testing::KilledBySignal(SIGABRT),
              "internal error: expected two \\+ two == 5 at .*check_test.cc:[0-9]+");
}

TEST(DebugCheck, IsACheckInDebugBuildsAndNotEvenEvaluatedInReleaseBuilds) {
#ifdef NDEBUG
  int evaluated = 0;
  MAGPIE_DCHECK(++evaluated == 5);
  EXPECT_EQ(evaluated, 0);
#else
  EXPECT_EXIT(MAGPIE_DCHECK(1 == 2), testing::KilledBySignal(SIGABRT), "expected 1 == 2");
#endif
}

}  // namespace
}  // namespace magpie::base
