// limit_files_test.cc: from the two texts of the kernel to the files that hold the quotas.

#include "cpus/limit_files.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fake_tree.h"

namespace magpie::cpus {
namespace {

// The directories of the files found, leaf first, without the file names.
std::vector<std::string> directories(const std::string& cgroup, const std::string& mountinfo) {
  std::vector<std::string> found;
  for (const LimitFile& file : find_limit_files(cgroup, mountinfo, "")) {
    found.push_back(file.quota_path.substr(0, file.quota_path.rfind('/')));
  }
  return found;
}
using Directories = std::vector<std::string>;

TEST(LimitFiles, ThePathIsWalkedFromTheLeafToTheMountPoint) {
  EXPECT_EQ(directories("0::/app/web\n", v2_mount("/", "/cg")),
            (Directories{"/cg/app/web", "/cg/app", "/cg"}));
}

TEST(LimitFiles, EachKindOfTreeHasItsOwnFileNames) {
  EXPECT_EQ(find_limit_files("0::/\n", v2_mount("/", "/cg"), "/fake"),
            (std::vector<LimitFile>{{LimitKind::kV2, "/fake/cg/cpu.max", ""}}));
  EXPECT_EQ(find_limit_files("2:cpu:/\n", v1_mount("/", "/cg", "cpu"), "/fake"),
            (std::vector<LimitFile>{
                {LimitKind::kV1, "/fake/cg/cpu.cfs_quota_us", "/fake/cg/cpu.cfs_period_us"}}));
}

TEST(LimitFiles, TheRootOfTheMountIsCutOffThePath) {
  EXPECT_EQ(directories("0::/docker/abc/job\n", v2_mount("/docker/abc", "/cg")),
            (Directories{"/cg/job", "/cg"}));
  EXPECT_EQ(directories("0::/docker/abc\n", v2_mount("/docker/abc", "/cg")), Directories{"/cg"});
}

TEST(LimitFiles, AMountThatShowsAnotherPartOfTheTreeIsNotUsed) {
  EXPECT_EQ(directories("0::/app\n", v2_mount("/db", "/cg")), Directories{});
  EXPECT_EQ(directories("0::/app\n", v2_mount("/app/below", "/cg")), Directories{});
  EXPECT_EQ(directories("0::/\n", v2_mount("/app", "/cg")), Directories{});
}

TEST(LimitFiles, ARootThatIsOnlyAPrefixOfANameDoesNotMatch) {
  EXPECT_EQ(directories("0::/docker/abcd\n", v2_mount("/docker/abc", "/cg")), Directories{});
}

TEST(LimitFiles, AtTheTopOfANamespaceTheMountPointIsOurs) {
  EXPECT_EQ(directories("0::/\n", v2_mount("/", "/cg")), Directories{"/cg"});
}

TEST(LimitFiles, AMountAboveTheNamespaceIsReadAtItsMountPointOnly) {
  EXPECT_EQ(directories("0::/\n", v2_mount("/../..", "/cg")), Directories{"/cg"});
  EXPECT_EQ(directories("0::/web\n", v2_mount("/..", "/cg")), Directories{"/cg"});
}

TEST(LimitFiles, AMountBesideTheNamespaceIsNotUsed) {
  EXPECT_EQ(directories("0::/web\n", v2_mount("/../other", "/cg")), Directories{});
}

TEST(LimitFiles, AProcessMovedOutOfItsNamespaceIsNotLimitedByWhatItLeft) {
  EXPECT_EQ(directories("0::/../x\n", v2_mount("/", "/cg")), Directories{});
  EXPECT_EQ(directories("0::/..\n", v2_mount("/", "/cg")), Directories{});
}

TEST(LimitFiles, AProcessMovedOutOfItsNamespaceIsFoundThroughAMountThatReachesAsHigh) {
  EXPECT_EQ(directories("0::/../x/y\n", v2_mount("/..", "/cg")),
            (Directories{"/cg/x/y", "/cg/x", "/cg"}));
  EXPECT_EQ(directories("0::/../x/y\n", v2_mount("/../x", "/cg")), (Directories{"/cg/y", "/cg"}));
}

TEST(LimitFiles, OctalEscapesInMountPointAndRootAreDecoded) {
  EXPECT_EQ(directories("0::/my app/x\n", v2_mount("/my\\040app", "/the\\040\\134cg\\011")),
            (Directories{"/the \\cg\t/x", "/the \\cg\t"}));
}

TEST(LimitFiles, ABackslashInTheCgroupPathIsTakenAsItIs) {
  EXPECT_EQ(directories("0::/a\\040b\n", v2_mount("/", "/cg")),
            (Directories{"/cg/a\\040b", "/cg"}));
}

TEST(LimitFiles, AnEscapeThatIsCutShortIsTakenAsItIs) {
  EXPECT_EQ(directories("0::/\n", v2_mount("/", "/cg\\04")), Directories{"/cg\\04"});
  EXPECT_EQ(directories("0::/\n", v2_mount("/", "/cg\\")), Directories{"/cg\\"});
  EXPECT_EQ(directories("0::/\n", v2_mount("/", "/cg\\089")), Directories{"/cg\\089"});
}

TEST(LimitFiles, ColonsBelongToTheCgroupPath) {
  EXPECT_EQ(directories("0::/a:b::c\n", v2_mount("/", "/cg")), (Directories{"/cg/a:b::c", "/cg"}));
}

TEST(LimitFiles, TheCpuControllerIsFoundAmongItsNeighbours) {
  const std::string mounts = v1_mount("/", "/cg/cpuset", "cpuset") +
                             v1_mount("/", "/cg/both", "cpuacct,cpu") +
                             v1_mount("/", "/cg/named", "xattr,name=cpu");
  EXPECT_EQ(directories("5:cpuset:/s\n4:cpuacct,cpu:/app\n1:name=cpu:/n\n", mounts),
            (Directories{"/cg/both/app", "/cg/both"}));
}

TEST(LimitFiles, InAHybridSetUpBothTreesAreWalked) {
  const std::string mounts = v1_mount("/", "/cg/cpu", "cpu") + v2_mount("/", "/cg/unified");
  EXPECT_EQ(directories("3:cpu:/old\n0::/new\n", mounts),
            (Directories{"/cg/cpu/old", "/cg/cpu", "/cg/unified/new", "/cg/unified"}));
}

TEST(LimitFiles, EveryMountThatShowsOurPathIsUsed) {
  const std::string mounts = v2_mount("/app", "/cg") + v2_mount("/", "/host/cg");
  EXPECT_EQ(directories("0::/app\n", mounts), (Directories{"/cg", "/host/cg/app", "/host/cg"}));
}

TEST(LimitFiles, AMountCoveredByAnotherIsLeftOutWhateverTheirOrder) {
  const std::string below = "50 24 0:30 / /cg rw - cgroup2 cgroup2 rw\n";
  const std::string cgroup_above = "60 50 0:30 /app /cg rw - cgroup2 cgroup2 rw\n";
  const std::string tmpfs_above = "60 50 0:44 / /cg rw - tmpfs tmpfs rw\n";
  const std::string child = "60 50 0:44 / /cg/sub rw - tmpfs tmpfs rw\n";
  EXPECT_EQ(directories("0::/app\n", below + cgroup_above), Directories{"/cg"});
  EXPECT_EQ(directories("0::/app\n", cgroup_above + below), Directories{"/cg"});
  EXPECT_EQ(directories("0::/app\n", below + tmpfs_above), Directories{});
  EXPECT_EQ(directories("0::/app\n", below + child), (Directories{"/cg/app", "/cg"}));
}

TEST(LimitFiles, AMountWithoutOptionalFieldsOrWithAnEmptySourceIsUnderstood) {
  EXPECT_EQ(directories("2:cpu:/\n", "33 25 0:29 / /cg rw - cgroup  rw,cpu\n"), Directories{"/cg"});
}

TEST(LimitFiles, AMissingLastNewlineIsNoProblem) {
  EXPECT_EQ(directories("0::/app", "33 25 0:29 / /cg rw - cgroup2 none rw"),
            (Directories{"/cg/app", "/cg"}));
}

TEST(LimitFiles, NonsenseInEitherTextIsSkipped) {
  const std::string mount = v2_mount("/", "/cg");
  for (const std::string cgroup :
       {"", "\n\n", ":", "::", "0", "0:", "0::", "0::relative", "0::/a/../b", "x:y:z", "0:cpu"}) {
    EXPECT_EQ(directories(cgroup, mount), Directories{}) << cgroup;
  }
  for (const std::string line : {"", " - ", " - cgroup2", "1 2 3 - cgroup2 c rw", "- cgroup2 c rw",
                                 "1 2 0:3 / relative rw - cgroup2 c rw",
                                 "1 2 0:3 relative /cg rw - cgroup2 c rw", "1 2 0:3 / /cg rw"}) {
    EXPECT_EQ(directories("0::/app\n", line + "\n"), Directories{}) << line;
    EXPECT_EQ(directories("0::/\n", line + "\n" + mount), Directories{"/cg"}) << line;
  }
}

TEST(LimitFiles, APathLongerThanTheKernelAllowsIsSkipped) {
  std::string path;
  for (int i = 0; i < 100'000; ++i) path += "/d";
  EXPECT_EQ(directories("0::" + path + "\n", v2_mount("/", "/cg")), Directories{});
}

}  // namespace
}  // namespace magpie::cpus
