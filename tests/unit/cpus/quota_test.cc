// quota_test.cc: the smallest quota over all cgroups of the process, read from fake trees.

#include "cpus/quota.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "fake_tree.h"
#include "support/no_descriptors.h"

namespace magpie::cpus {
namespace {

class Quota : public testing::Test {
 protected:
  // A process in the v2 cgroup /app/web of a plain machine.
  void sit_in_app_web() {
    tree_.set_cgroup("0::/app/web\n");
    tree_.set_mountinfo(v2_mount("/", "/cg"));
  }
  std::optional<double> read_once() { return QuotaReader(tree_.root()).read(); }

  FakeTree tree_;
};

TEST_F(Quota, AV2LimitOfTheLeafCounts) {
  sit_in_app_web();
  tree_.write("/cg/app/web/cpu.max", "250000 100000\n");
  EXPECT_EQ(read_once(), 2.5);
}

TEST_F(Quota, AV2AncestorThatIsTighterThanTheLeafWins) {
  sit_in_app_web();
  tree_.write("/cg/app/web/cpu.max", "800000 100000\n");
  tree_.write("/cg/app/cpu.max", "150000 50000\n");
  EXPECT_EQ(read_once(), 3.0);
}

TEST_F(Quota, AV2AncestorThatIsLooserThanTheLeafDoesNotCount) {
  sit_in_app_web();
  tree_.write("/cg/app/web/cpu.max", "200000 100000\n");
  tree_.write("/cg/app/cpu.max", "800000 100000\n");
  EXPECT_EQ(read_once(), 2.0);
}

TEST_F(Quota, ALimitedSiblingDoesNotCount) {
  sit_in_app_web();
  tree_.write("/cg/app/db/cpu.max", "100000 100000\n");
  EXPECT_EQ(read_once(), std::nullopt);
}

TEST_F(Quota, MaxIsNoLimit) {
  sit_in_app_web();
  tree_.write("/cg/app/web/cpu.max", "max 100000\n");
  tree_.write("/cg/app/cpu.max", "max 100000\n");
  EXPECT_EQ(read_once(), std::nullopt);
}

TEST_F(Quota, AnAncestorLimitsALeafThatIsAtMax) {
  sit_in_app_web();
  tree_.write("/cg/app/web/cpu.max", "max 100000\n");
  tree_.write("/cg/app/cpu.max", "400000 100000\n");
  EXPECT_EQ(read_once(), 4.0);
}

TEST_F(Quota, AV1LimitCounts) {
  tree_.set_cgroup("7:memory:/m\n2:cpu:/app\n");
  tree_.set_mountinfo(v1_mount("/", "/cg/memory", "memory") + v1_mount("/", "/cg/cpu", "cpu"));
  tree_.write_v1("/cg/cpu/app", "150000", "100000");
  EXPECT_EQ(read_once(), 1.5);
}

TEST_F(Quota, AV1AncestorInAComountedTreeCounts) {
  tree_.set_cgroup("4:cpu,cpuacct:/pod/app\n");
  tree_.set_mountinfo(v1_mount("/", "/cg/cpu,cpuacct", "cpu,cpuacct"));
  tree_.write_v1("/cg/cpu,cpuacct/pod/app", "900000", "100000");
  tree_.write_v1("/cg/cpu,cpuacct/pod", "600000", "100000");
  tree_.write_v1("/cg/cpu,cpuacct", "-1", "100000");
  EXPECT_EQ(read_once(), 6.0);
}

TEST_F(Quota, AV1QuotaOfMinusOneIsNoLimit) {
  tree_.set_cgroup("2:cpu:/app\n");
  tree_.set_mountinfo(v1_mount("/", "/cg/cpu", "cpu"));
  tree_.write_v1("/cg/cpu/app", "-1", "100000");
  EXPECT_EQ(read_once(), std::nullopt);
}

TEST_F(Quota, AV1QuotaWithoutItsPeriodIsNoLimit) {
  tree_.set_cgroup("2:cpu:/app\n");
  tree_.set_mountinfo(v1_mount("/", "/cg/cpu", "cpu"));
  tree_.write("/cg/cpu/app/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(read_once(), std::nullopt);
}

TEST_F(Quota, InAHybridSetUpTheTighterTreeWins) {
  tree_.set_cgroup("2:cpu:/app\n0::/app\n");
  tree_.set_mountinfo(v1_mount("/", "/cg/cpu", "cpu") + v2_mount("/", "/cg/unified"));
  tree_.write_v1("/cg/cpu/app", "500000", "100000");
  tree_.write("/cg/unified/app/cpu.max", "300000 100000\n");
  EXPECT_EQ(read_once(), 3.0);
  tree_.write_v1("/cg/cpu/app", "200000", "100000");
  EXPECT_EQ(read_once(), 2.0);
}

TEST_F(Quota, InAContainerTheRootOfTheMountIsOurOwnCgroup) {
  tree_.set_cgroup("4:cpu,cpuacct:/docker/abc\n0::/docker/abc/init\n");
  tree_.set_mountinfo(v1_mount("/docker/abc", "/cg/cpu", "cpu,cpuacct") +
                      v2_mount("/docker/abc", "/cg/unified"));
  tree_.write_v1("/cg/cpu", "400000", "100000");
  EXPECT_EQ(read_once(), 4.0);
  tree_.write("/cg/unified/init/cpu.max", "350000 100000\n");
  EXPECT_EQ(read_once(), 3.5);
  tree_.write("/cg/unified/cpu.max", "250000 100000\n");
  EXPECT_EQ(read_once(), 2.5);
}

TEST_F(Quota, InACgroupNamespaceTheLimitStandsAtTheMountPoint) {
  tree_.set_cgroup("0::/\n");
  tree_.set_mountinfo(v2_mount("/", "/cg"));
  tree_.write("/cg/cpu.max", "150000 100000\n");
  EXPECT_EQ(read_once(), 1.5);
}

TEST_F(Quota, AMountPointWithABlankIsFound) {
  tree_.set_cgroup("0::/app\n");
  tree_.set_mountinfo(v2_mount("/", "/my\\040cg"));
  tree_.write("/my cg/app/cpu.max", "100000 100000\n");
  EXPECT_EQ(read_once(), 1.0);
}

TEST_F(Quota, WithoutAnyFilesThereIsNoLimit) {
  EXPECT_EQ(read_once(), std::nullopt);
  tree_.set_cgroup("0::/app\n");
  EXPECT_EQ(read_once(), std::nullopt);
  tree_.set_mountinfo(v2_mount("/", "/cg"));
  EXPECT_EQ(read_once(), std::nullopt);
}

TEST_F(Quota, AFileThatIsADirectoryIsNoLimit) {
  sit_in_app_web();
  tree_.write("/cg/app/web/cpu.max/oops", "1 1\n");
  EXPECT_EQ(read_once(), std::nullopt);
}

TEST_F(Quota, NonsenseInOneFileDoesNotHideTheLimitInAnother) {
  sit_in_app_web();
  tree_.write("/cg/app/web/cpu.max", std::string("\0\xff\n rubbish", 11));
  tree_.write("/cg/app/cpu.max", "200000 100000\n");
  EXPECT_EQ(read_once(), 2.0);
}

TEST_F(Quota, AChangedValueIsSeenWithoutANewSearch) {
  sit_in_app_web();
  tree_.write("/cg/app/web/cpu.max", "200000 100000\n");
  QuotaReader reader(tree_.root());
  EXPECT_EQ(reader.read(), 2.0);
  tree_.write("/cg/app/web/cpu.max", "300000 100000\n");
  EXPECT_EQ(reader.read(), 3.0);
  tree_.write("/cg/app/web/cpu.max", "max 100000\n");
  EXPECT_EQ(reader.read(), std::nullopt);
  EXPECT_EQ(reader.discoveries(), 1);
}

TEST_F(Quota, ALimitFileThatAppearsLaterIsSeenWithoutANewSearch) {
  sit_in_app_web();
  QuotaReader reader(tree_.root());
  EXPECT_EQ(reader.read(), std::nullopt);
  tree_.write("/cg/app/cpu.max", "200000 100000\n");
  EXPECT_EQ(reader.read(), 2.0);
  EXPECT_EQ(reader.discoveries(), 1);
}

TEST_F(Quota, AProcessMovedToAnotherCgroupIsFollowed) {
  sit_in_app_web();
  tree_.write("/cg/app/web/cpu.max", "200000 100000\n");
  tree_.write("/cg/batch/cpu.max", "700000 100000\n");
  QuotaReader reader(tree_.root());
  EXPECT_EQ(reader.read(), 2.0);
  tree_.set_cgroup("0::/batch\n");
  EXPECT_EQ(reader.read(), 7.0);
  EXPECT_EQ(reader.discoveries(), 2);
}

TEST_F(Quota, WhenTheFilesVanishTheyAreSearchedForElsewhere) {
  sit_in_app_web();
  tree_.write("/cg/app/web/cpu.max", "200000 100000\n");
  QuotaReader reader(tree_.root());
  EXPECT_EQ(reader.read(), 2.0);
  tree_.remove("/cg");
  tree_.set_mountinfo(v2_mount("/", "/new/cg"));
  tree_.write("/new/cg/app/cpu.max", "500000 100000\n");
  EXPECT_EQ(reader.read(), 5.0);
  EXPECT_EQ(reader.discoveries(), 2);
}

TEST_F(Quota, AVanishedFileIsSearchedForOnlyOnce) {
  sit_in_app_web();
  tree_.write("/cg/app/web/cpu.max", "200000 100000\n");
  QuotaReader reader(tree_.root());
  tree_.remove("/cg/app/web/cpu.max");
  EXPECT_EQ(reader.read(), std::nullopt);
  EXPECT_EQ(reader.read(), std::nullopt);
  EXPECT_EQ(reader.discoveries(), 2);
}

TEST_F(Quota, ATreeThatIsMountedLateIsFound) {
  tree_.set_cgroup("0::/app\n");
  tree_.set_mountinfo("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
  tree_.write("/cg/app/cpu.max", "200000 100000\n");
  QuotaReader reader(tree_.root());
  EXPECT_EQ(reader.read(), std::nullopt);
  tree_.set_mountinfo(v2_mount("/", "/cg"));
  EXPECT_EQ(reader.read(), 2.0);
}

TEST_F(Quota, TheLastAnswerHoldsWhileNoDescriptorIsFree) {
  sit_in_app_web();
  tree_.write("/cg/app/web/cpu.max", "200000 100000\n");
  QuotaReader reader(tree_.root());
  EXPECT_EQ(reader.read(), 2.0);
  tree_.write("/cg/app/web/cpu.max", "300000 100000\n");
  {
    support::NoDescriptors blind;
    EXPECT_EQ(reader.read(), 2.0);
  }
  EXPECT_EQ(reader.read(), 3.0);
  EXPECT_EQ(reader.discoveries(), 1);
}

TEST_F(Quota, AReaderBornWithoutDescriptorsFindsTheFilesLater) {
  sit_in_app_web();
  tree_.write("/cg/app/web/cpu.max", "200000 100000\n");
  std::optional<QuotaReader> reader;
  {
    support::NoDescriptors blind;
    reader.emplace(tree_.root());
    EXPECT_EQ(reader->read(), std::nullopt);
  }
  EXPECT_EQ(reader->read(), 2.0);
}

TEST(QuotaOfThisMachine, IsNoneOrPositive) {
  QuotaReader reader;
  EXPECT_GT(reader.read().value_or(1.0), 0.0);
}

TEST(ParseCpuMax, QuotaOverPeriod) {
  EXPECT_EQ(parse_cpu_max("50000 100000\n"), 0.5);
  EXPECT_EQ(parse_cpu_max("1000 1000000"), 0.001);
}

TEST(ParseCpuMax, WhatIsNotAPositiveQuotaOverAPositivePeriodIsNoLimit) {
  for (const char* text :
       {"", "\n", " ", "max 100000\n", "max", "max max", "100000\n", "100000 0\n", "0 100000\n",
        "-1 100000", "100000 -100000", "-5 -5", "1e5 100000", "100000x 100000", "0x10 100000",
        "+5 5", "100000 100000 1", "99999999999999999999 100000", "100000 99999999999999999999"}) {
    EXPECT_EQ(parse_cpu_max(text), std::nullopt) << text;
  }
}

TEST(ParseCpuMax, TheLargestNumbersStillDivide) {
  EXPECT_EQ(parse_cpu_max("9223372036854775807 9223372036854775807"), 1.0);
  EXPECT_GT(parse_cpu_max("9223372036854775807 1"), 9.2e18);
}

TEST(ParseCfs, WhatIsNotAPositiveQuotaOverAPositivePeriodIsNoLimit) {
  EXPECT_EQ(parse_cfs("200000\n", "100000\n"), 2.0);
  EXPECT_EQ(parse_cfs("-1\n", "100000\n"), std::nullopt);
  EXPECT_EQ(parse_cfs("200000\n", "0\n"), std::nullopt);
  EXPECT_EQ(parse_cfs("200000\n", ""), std::nullopt);
  EXPECT_EQ(parse_cfs("200000 5\n", "100000\n"), std::nullopt);
  EXPECT_EQ(parse_cfs("200000\n", "100000 5\n"), std::nullopt);
}

}  // namespace
}  // namespace magpie::cpus
