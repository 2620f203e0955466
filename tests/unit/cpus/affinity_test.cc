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

}  // namespace
}  // namespace magpie::cpus
