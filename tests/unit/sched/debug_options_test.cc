// What MAGPIE_DEBUG may say.
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "sched/run/debug_options.h"

namespace magpie::sched {
namespace {

DebugOptions read(const char* text) {
  setenv("MAGPIE_DEBUG", text, 1);
  struct Unset {
    ~Unset() { unsetenv("MAGPIE_DEBUG"); }
  } unset;
  return DebugOptions::from_environment();
}

TEST(DebugOptions, NothingIsTheDefault) {
  unsetenv("MAGPIE_DEBUG");
  DebugOptions options = DebugOptions::from_environment();
  EXPECT_EQ(options.schedtrace_ns, 0);
  EXPECT_FALSE(options.scheddetail);
  EXPECT_TRUE(options.preempt);
  EXPECT_EQ(options.chaos_seed, 0u);
}

TEST(DebugOptions, SeveralAreSeparatedByCommas) {
  DebugOptions options = read("schedtrace=250,scheddetail=1,preempt=off");
  EXPECT_EQ(options.schedtrace_ns, 250'000'000);
  EXPECT_TRUE(options.scheddetail);
  EXPECT_FALSE(options.preempt);
}

TEST(DebugOptions, ChaosHasASeed) {
  EXPECT_EQ(read("chaos=42").chaos_seed, 42u);
  EXPECT_EQ(read("chaos=18446744073709551615,preempt=off").chaos_seed, 18446744073709551615u);
  EXPECT_EQ(read("chaos=0").chaos_seed, 0u);
}

TEST(DebugOptions, WhatIsNotUnderstoodIsNamed) {
  for (const char* text :
       {"schedtrace", "schedtrace=", "schedtrace=x", "schedtrace=-1", "schedtrace=1s",
        "scheddetail=2", "preempt=maybe", "speed=11", "schedtrace=1,,", "chaos",
        "chaos=", "chaos=on", "chaos=-1", "chaos=1x", "chaos=18446744073709551616"}) {
    EXPECT_THROW(read(text), std::invalid_argument) << text;
  }
  try {
    read("preempt=on,speed=11");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("\"speed=11\""), std::string::npos);
  }
}

}  // namespace
}  // namespace magpie::sched
