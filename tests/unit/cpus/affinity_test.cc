// affinity_test.cc: counting the CPUs of the affinity mask, on small and on very large machines.

#include "cpus/affinity.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <vector>

namespace magpie::cpus {
namespace {

TEST(Affinity, ThisThreadMayRunOnAtLeastOneCpu) { EXPECT_GE(affinity_cpus(), 1); }

TEST(Affinity, AThreadThatIsPinnedToOneCpuCountsOne) {
  std::thread([] {
    const auto here = static_cast<std::size_t>(sched_getcpu());
    cpu_set_t only_here;
    CPU_ZERO(&only_here);
    CPU_SET(here, &only_here);
    ASSERT_EQ(sched_setaffinity(0, sizeof only_here, &only_here), 0);
    EXPECT_EQ(affinity_cpus(), 1);
  }).join();
}

TEST(Affinity, TheListHasAsManyCpusAsAreCounted) {
  const std::vector<int> cpus = affinity_list();
  EXPECT_EQ(static_cast<int>(cpus.size()), affinity_cpus());
  EXPECT_TRUE(std::is_sorted(cpus.begin(), cpus.end()));
}

TEST(Affinity, TheMaskGrowsUntilTheKernelAcceptsIt) {
  // A kernel built for 8192 CPUs, of which 3 are ours, one of them the last.
  const AffinityCall huge_machine = [](std::size_t bytes, unsigned long* mask) -> int {
    if (bytes < 8192 / 8) return EINVAL;
    auto* octets = reinterpret_cast<unsigned char*>(mask);
    octets[0] = 0x11;
    octets[8192 / 8 - 1] = 0x80;
    return 0;
  };
  EXPECT_EQ(count_affinity(huge_machine), 3);
}

TEST(Affinity, AKernelThatRejectsEverySizeDoesNotKeepUsAskingForever) {
  EXPECT_EQ(count_affinity([](std::size_t, unsigned long*) -> int { return EINVAL; }), 0);
}

TEST(Affinity, AForbiddenCallCountsNothing) {
  EXPECT_EQ(count_affinity([](std::size_t, unsigned long*) -> int { return EPERM; }), 0);
}

// A kernel from 6.2 on: it remembers what the thread asked for.
struct Kernel {
  cpu_set_t cpuset{}, asked{};
  bool has_asked = false;

  cpu_set_t allowed() const {
    if (!has_asked) return cpuset;
    cpu_set_t both;
    CPU_AND(&both, &cpuset, &asked);
    return both;
  }
};
Kernel kernel;

constexpr AffinityCalls kModelled = {.get =
                                         [](cpu_set_t& mask) {
                                           mask = kernel.allowed();
                                           return true;
                                         },
                                     .set =
                                         [](const cpu_set_t& mask) {
                                           kernel.asked = mask;
                                           kernel.has_asked = true;
                                           return true;
                                         }};

cpu_set_t first_cpus(std::size_t count) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (std::size_t cpu = 0; cpu < count; ++cpu) CPU_SET(cpu, &set);
  return set;
}

TEST(Affinity, AThreadThatWasMovedFollowsItsCpusetWhenThatGrows) {
  kernel = {.cpuset = first_cpus(4)};
  const cpu_set_t before = kernel.allowed();
  kModelled.set(first_cpus(1));
  use_cpus_again(before, kModelled);
  const cpu_set_t after = kernel.allowed();
  EXPECT_TRUE(CPU_EQUAL(&after, &before));
  kernel.cpuset = first_cpus(8);
  const cpu_set_t grown = kernel.allowed();
  EXPECT_EQ(CPU_COUNT(&grown), 8);
}

TEST(Affinity, AThreadThatWasMovedKeepsToTheCpusThatTheUserChose) {
  kernel = {.cpuset = first_cpus(8), .asked = first_cpus(3), .has_asked = true};
  const cpu_set_t before = kernel.allowed();
  kModelled.set(first_cpus(1));
  use_cpus_again(before, kModelled);
  const cpu_set_t after = kernel.allowed();
  EXPECT_TRUE(CPU_EQUAL(&after, &before));
}

}  // namespace
}  // namespace magpie::cpus
