// default_procs_test.cc: from affinity and quota to the number of procs.

#include "cpus/default_procs.h"

#include <gtest/gtest.h>

#include <limits>

namespace magpie::cpus {
namespace {

TEST(DefaultProcs, WithoutAQuotaEveryCpuGetsAProc) {
  EXPECT_EQ(default_procs(1, std::nullopt), 1);
  EXPECT_EQ(default_procs(64, std::nullopt), 64);
}

TEST(DefaultProcs, AQuotaBelowTheAffinityLimitsTheProcs) { EXPECT_EQ(default_procs(64, 4.0), 4); }

TEST(DefaultProcs, AFractionOfACpuRoundsUp) {
  EXPECT_EQ(default_procs(64, 2.5), 3);
  EXPECT_EQ(default_procs(64, 4.00001), 5);
}

TEST(DefaultProcs, AQuotaNeverGoesBelowTwoProcs) {
  EXPECT_EQ(default_procs(64, 1.0), 2);
  EXPECT_EQ(default_procs(64, 0.01), 2);
  EXPECT_EQ(default_procs(2, 0.5), 2);
}

TEST(DefaultProcs, TheMinimumOfTwoDoesNotRiseAboveTheAffinity) {
  EXPECT_EQ(default_procs(1, 0.5), 1);
}

TEST(DefaultProcs, AQuotaAboveTheAffinityChangesNothing) {
  EXPECT_EQ(default_procs(8, 7.5), 8);
  EXPECT_EQ(default_procs(8, 8.0), 8);
  EXPECT_EQ(default_procs(8, 9.2e18), 8);
  EXPECT_EQ(default_procs(8, std::numeric_limits<double>::infinity()), 8);
}

TEST(DefaultProcs, WhatIsNotANumberIsNoQuota) {
  EXPECT_EQ(default_procs(8, std::numeric_limits<double>::quiet_NaN()), 8);
}

TEST(DefaultProcs, ThereIsAlwaysOneProc) {
  EXPECT_EQ(default_procs(0, std::nullopt), 1);
  EXPECT_EQ(default_procs(-3, -7.0), 1);
}

}  // namespace
}  // namespace magpie::cpus
