// version_test.cc: the macros and the library tell the same version.

#include <magpie/version.h>

#include <gtest/gtest.h>

#include <string>

namespace magpie {
namespace {

static_assert(MAGPIE_VERSION >= 200);

TEST(Version, TheLibraryTellsTheVersionOfTheHeaders) {
  EXPECT_STREQ(version(), MAGPIE_VERSION_STRING);
}

TEST(Version, TheTextHasTheThreeNumbers) {
  EXPECT_EQ(MAGPIE_VERSION_STRING, std::to_string(MAGPIE_VERSION / 10000) + "." +
                                       std::to_string(MAGPIE_VERSION / 100 % 100) + "." +
                                       std::to_string(MAGPIE_VERSION % 100));
}

}  // namespace
}  // namespace magpie
