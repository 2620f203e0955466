// containers_test.cc: limits that change while the runtime runs, and throttling. In a fake tree
// everywhere, and in real cgroups where this process may make some.

#include <magpie/magpie.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>
#include <system_error>

#include "sched/child_settings.h"
#include "sched/run/procs.h"
#include "support/captured_stderr.h"
#include "support/rt_test.h"
#include "unit/cpus/fake_tree.h"
#include "unit/sched/fake_cpus.h"

namespace magpie {
namespace {

using sched::ChildSettings;
using support::eventually;
using support::fake_cpus;

constexpr std::int64_t kOftenNs = 5'000'000;  // a test should not wait for a second at each step

// Goroutines that compute, so that the process wants all CPU time it can have.
class Burners {
 public:
  explicit Burners(int goroutines) {
    for (int i = 0; i < goroutines; ++i) {
      all_.go([this] {
        while (!over_.load(std::memory_order_relaxed)) yield();
      });
    }
  }
  ~Burners() {
    over_ = true;
    all_.wait();
  }

 private:
  std::atomic<bool> over_{false};
  WaitGroup all_;
};

// What the runtime sees instead of the machine: 8 CPUs and the files of `tree`.
struct FakeContainer {
  FakeContainer() {
    unsetenv("MAGPIE_PROCS");
    fake_cpus = 8;
    sched::set_file_root(tree.root(), kOftenNs);
  }
  ~FakeContainer() {
    sched::set_file_root("");
    fake_cpus = 0;
  }
  // In one step, as the kernel does it: a reader never sees half of it.
  void replace(const std::string& path, const std::string& text) {
    tree.write(path + ".new", text);
    std::filesystem::rename(tree.root() + path + ".new", tree.root() + path);
  }

  cpus::FakeTree tree;
};

bool becomes(int n) {
  return eventually([n] { return procs() == n; });
}

TEST(Container, ANarrowerAndAWiderAffinityMaskAreFollowed) {
  FakeContainer container;
  run([] {
    ASSERT_EQ(procs(), 8);
    const Burners load(4);
    fake_cpus = 3;
    ASSERT_TRUE(becomes(3));
    EXPECT_EQ(stats().cpus, 3);
    EXPECT_EQ(num_cpu(), 8);  // when the runtime started
    fake_cpus = 6;
    ASSERT_TRUE(becomes(6));
  });
}

TEST(Container, ASetProcsThatFailsLeavesTheNumberToTheMask) {
  FakeContainer container;
  run([] {
    ASSERT_EQ(procs(), 8);
    const Burners load(4);
    support::ps_to_refuse = 1;
    EXPECT_THROW(set_procs(20), std::bad_alloc);
    EXPECT_EQ(procs(), 8);
    fake_cpus = 3;
    EXPECT_TRUE(becomes(3));
  });
}

TEST(Container, TheSmallestOfNestedV2QuotasIsFollowedRoundedUp) {
  FakeContainer container;
  container.tree.set_cgroup("0::/pod/app\n");
  container.tree.set_mountinfo(cpus::v2_mount("/", "/cg"));
  container.replace("/cg/pod/app/cpu.max", "500000 100000\n");
  container.replace("/cg/pod/cpu.max", "max 100000\n");
  run([&] {
    ASSERT_EQ(procs(), 5);
    const Burners load(4);
    container.replace("/cg/pod/cpu.max", "250000 100000\n");
    ASSERT_TRUE(becomes(3));
    EXPECT_EQ(stats().cpu_quota, 2.5);
    container.replace("/cg/pod/app/cpu.max", "30000 100000\n");
    ASSERT_TRUE(becomes(2));  // never below two, while there are two CPUs
    container.replace("/cg/pod/app/cpu.max", "max 100000\n");
    container.replace("/cg/pod/cpu.max", "max 100000\n");
    ASSERT_TRUE(becomes(8));
    EXPECT_EQ(stats().cpu_quota, 0);
  });
}

TEST(Container, ChangesOfNestedV1QuotasAreFollowed) {
  FakeContainer container;
  container.tree.set_cgroup("3:cpu,cpuacct:/pod/app\n");
  container.tree.set_mountinfo(cpus::v1_mount("/", "/cg/cpu", "cpu,cpuacct"));
  container.tree.write_v1("/cg/cpu/pod/app", "700000", "100000");
  container.tree.write_v1("/cg/cpu/pod", "-1", "100000");
  run([&] {
    ASSERT_EQ(procs(), 7);
    const Burners load(4);
    container.replace("/cg/cpu/pod/cpu.cfs_quota_us", "350000\n");
    ASSERT_TRUE(becomes(4));
    container.replace("/cg/cpu/pod/app/cpu.cfs_period_us", "350000\n");
    ASSERT_TRUE(becomes(2));
  });
}

TEST(Container, FilesThatVanishLiftTheLimitAndNonsenseIsNone) {
  FakeContainer container;
  container.tree.set_cgroup("0::/app\n");
  container.tree.set_mountinfo(cpus::v2_mount("/", "/cg"));
  container.replace("/cg/app/cpu.max", "300000 100000\n");
  run([&] {
    ASSERT_EQ(procs(), 3);
    const Burners load(4);
    container.tree.remove("/cg/app");
    ASSERT_TRUE(becomes(8));
    container.replace("/cg/app/cpu.max", "200000 100000\n");
    ASSERT_TRUE(becomes(2));
    container.replace("/cg/app/cpu.max", "\xff what 100000 0\n");
    ASSERT_TRUE(becomes(8));
  });
}

std::string stat_text(int periods, int throttled, int us) {
  return "nr_periods " + std::to_string(periods) + "\nnr_throttled " + std::to_string(throttled) +
         "\nthrottled_usec " + std::to_string(us) + "\n";
}

void expect_throttling_to_be_counted(FakeContainer& container) {
  const Burners load(2);
  // The first look, which counts from here on, has been made when the quota is known.
  ASSERT_TRUE(eventually([] { return stats().cpu_quota == 4; }));
  EXPECT_EQ(stats().throttled_periods, 0u);
  container.replace("/cg/app/cpu.stat", stat_text(110, 22, 5'700));
  EXPECT_TRUE(eventually([] { return stats().quota_periods == 10; }));
  EXPECT_TRUE(eventually([] { return stats().throttled_periods == 2; }));
  EXPECT_TRUE(eventually([] { return stats().throttled_ns == 5'000'000; }));
}

class ThrottledContainer : public testing::Test {
 protected:
  ThrottledContainer() {
    container_.tree.set_cgroup("0::/app\n");
    container_.tree.set_mountinfo(cpus::v2_mount("/", "/cg"));
    container_.replace("/cg/app/cpu.max", "400000 100000\n");
    container_.replace("/cg/app/cpu.stat", stat_text(100, 20, 700));
  }
  FakeContainer container_;
};

TEST_F(ThrottledContainer, IsCountedByAProgramThatFollowsTheQuota) {
  run([&] { expect_throttling_to_be_counted(container_); });
}

TEST_F(ThrottledContainer, IsCountedByAProgramThatSetsItsNumberOfProcs) {
  run(Options{.procs = 2}, [&] {
    expect_throttling_to_be_counted(container_);
    EXPECT_EQ(procs(), 2);
  });
}

// How much was written to stderr, which CapturedStderr makes a file.
long printed_bytes() {
  struct stat file;
  return fstat(STDERR_FILENO, &file) == 0 ? static_cast<long>(file.st_size) : 0;
}

TEST_F(ThrottledContainer, IsShownBySchedtrace) {
  constexpr long kSeveralLines = 4'000;
  setenv("MAGPIE_DEBUG", "schedtrace=1", 1);
  support::CapturedStderr printed;
  run([&] {
    expect_throttling_to_be_counted(container_);
    const long before = printed_bytes();
    EXPECT_TRUE(eventually([&] { return printed_bytes() > before + kSeveralLines; }));
  });
  unsetenv("MAGPIE_DEBUG");
  EXPECT_NE(printed.end().find(" quota=4.00 throttled=2/10/5ms\n"), std::string::npos);
}

// The real thing. /sys/fs/cgroup/cpu (v1) or /sys/fs/cgroup (v2) gets a group of its own, and this
// process moves into it.
class RealCgroup : public testing::Test {
 protected:
  void SetUp() override {
    const std::string name = "/magpie-test-" + std::to_string(getpid());
    for (const std::string tree : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}) {
      if (access((tree + "/cpu.cfs_quota_us").c_str(), W_OK) != 0 &&
          access((tree + "/cpu.shares").c_str(), W_OK) != 0) {
        continue;
      }
      tree_ = tree;
      is_v1_ = true;
    }
    if (tree_.empty() && allows_cpu("/sys/fs/cgroup/cgroup.subtree_control"))
      tree_ = "/sys/fs/cgroup";
    if (tree_.empty()) GTEST_SKIP() << "no cgroup tree with the cpu controller is writable here";
    home_ = home_group();
    if (home_ != "/") GTEST_SKIP() << "this process is in the cgroup " << home_ << " already";
    std::error_code error;
    std::filesystem::create_directory(tree_ + name, error);
    if (error) GTEST_SKIP() << tree_ + name << " cannot be made: " << error.message();
    group_ = tree_ + name;
    if (!set_quota(300'000) || !write(group_ + "/cgroup.procs", std::to_string(getpid())))
      GTEST_SKIP() << group_ << " cannot be given a quota, or this process";
    unsetenv("MAGPIE_PROCS");
    fake_cpus = 8;
    sched::set_file_root("", kOftenNs);
  }
  void TearDown() override {
    sched::set_file_root("");
    fake_cpus = 0;
    if (group_.empty()) return;
    EXPECT_TRUE(write(tree_ + "/cgroup.procs", std::to_string(getpid())));
    // Threads that have just ended stay in the group for a moment.
    EXPECT_TRUE(eventually([&] { return rmdir(group_.c_str()) == 0; })) << group_;
  }

  static bool write(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text << std::flush;
    return file.good();
  }
  static bool allows_cpu(const std::string& path) {
    std::ifstream file(path);
    for (std::string word; file >> word;)
      if (word == "cpu") return access(path.c_str(), W_OK) == 0;
    return false;
  }
  std::string home_group() const {
    std::ifstream file("/proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {
      const std::size_t first = line.find(':'), second = line.find(':', first + 1);
      const std::string controllers = line.substr(first + 1, second - first - 1);
      const bool is_ours =
          is_v1_ ? controllers == "cpu" || controllers == "cpu,cpuacct" : controllers.empty();
      if (is_ours) return line.substr(second + 1);
    }
    return "";
  }
  // In microseconds for each period of 100 ms.
  [[nodiscard]] bool set_quota(int us) const {
    if (is_v1_) return write(group_ + "/cpu.cfs_quota_us", std::to_string(us));
    return write(group_ + "/cpu.max", std::to_string(us) + " 100000");
  }

  std::string tree_, home_, group_;
  bool is_v1_ = false;
};

TEST_F(RealCgroup, AQuotaIsFollowedAndThrottlingIsNoticed) {
  run([&] {
    ASSERT_EQ(procs(), 3);
    const Burners load(4);
    ASSERT_TRUE(set_quota(450'000));
    ASSERT_TRUE(becomes(5));
    EXPECT_EQ(stats().cpu_quota, 4.5);
    // Little enough that even a machine with much else to do grants more.
    ASSERT_TRUE(set_quota(4'000));
    EXPECT_TRUE(becomes(2));
    // The kernel counts the time when the pause is over, so it comes after the period.
    EXPECT_TRUE(eventually([] { return stats().throttled_periods != 0; }));
    EXPECT_TRUE(eventually([] { return stats().throttled_ns != 0; }));
    EXPECT_TRUE(eventually([] { return stats().quota_periods >= stats().throttled_periods; }));
    ASSERT_TRUE(set_quota(800'000));
  });
}

// As `taskset -ap` does it: the mask of each thread.
void set_mask_of_all_threads(const cpu_set_t& mask) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    sched_setaffinity(std::stoi(entry.path().filename().string()), sizeof mask, &mask);
}

// How many CPUs the calling thread may use when it is not pinned.
int cpus_when_not_pinned() {
  const ChildSettings not_pinned;
  cpu_set_t mask;
  return sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : -1;
}

class RealAffinity : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(sched_getaffinity(0, sizeof all_, &all_), 0);
    if (CPU_COUNT(&all_) < 2) GTEST_SKIP() << "this process may use one CPU only";
    CPU_ZERO(&one_);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one_) == 0; ++cpu)
      if (CPU_ISSET(cpu, &all_)) CPU_SET(cpu, &one_);
    unsetenv("MAGPIE_PROCS");
    no_quota_.set_cgroup("");
    no_quota_.set_mountinfo("");
    sched::set_file_root(no_quota_.root(), kOftenNs);
  }
  void TearDown() override {
    set_mask_of_all_threads(all_);
    sched::set_file_root("");
  }

  cpu_set_t all_, one_;
  cpus::FakeTree no_quota_;
};

TEST_F(RealAffinity, AMaskThatIsNarrowedWhileRunningIsFollowed) {
  run([&] {
    ASSERT_EQ(procs(), CPU_COUNT(&all_));
    const Burners load(4);
    set_mask_of_all_threads(one_);
    EXPECT_TRUE(becomes(1));
    set_mask_of_all_threads(all_);
    EXPECT_TRUE(becomes(CPU_COUNT(&all_)));
  });
}

TEST_F(RealAffinity, AMaskIsFollowedByPinnedThreadsOnceThereIsMemoryForThePs) {
  set_mask_of_all_threads(one_);
  run(Options{.pin = true}, [&] {
    ASSERT_EQ(procs(), 1);
    ASSERT_EQ(cpus_when_not_pinned(), 1);
    const Burners load(4);
    support::ps_to_refuse = 1;
    set_mask_of_all_threads(all_);
    ASSERT_TRUE(becomes(CPU_COUNT(&all_)));
    EXPECT_EQ(support::ps_to_refuse, 0);
    EXPECT_TRUE(eventually([&] { return cpus_when_not_pinned() == CPU_COUNT(&all_); }));
  });
}

}  // namespace
}  // namespace magpie
