// topology_test.cc: what a tree of sysfs says, what a text says, and where Ps are at home in it.

#include "cpus/topology.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "cpus/homes.h"
#include "fake_tree.h"

namespace magpie::cpus {
namespace {

std::vector<int> first_cpus(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

void write_cpu(FakeTree& tree, int cpu, const std::string& core, const std::string& cache) {
  const std::string directory = "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
  tree.write(directory + "/topology/core_cpus_list", core + "\n");
  tree.write(directory + "/cache/index2/shared_cpu_list", core + "\n");
  tree.write(directory + "/cache/index3/shared_cpu_list", cache + "\n");
}
void write_node(FakeTree& tree, int node, const std::string& cpus) {
  tree.write("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist", cpus + "\n");
}

// Two nodes, two caches in the first, siblings four apart: 0 1 | 2 3 and 8 9, siblings 4 5 | 6 7.
void write_machine(FakeTree& tree) {
  tree.write("/sys/devices/system/node/online", "0-1\n");
  write_node(tree, 0, "0-7");
  write_node(tree, 1, "8-9");
  for (const int cpu : {0, 1, 4, 5})
    write_cpu(tree, cpu, std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4), "0-1,4-5");
  for (const int cpu : {2, 3, 6, 7})
    write_cpu(tree, cpu, std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4), "2-3,6-7");
  for (const int cpu : {8, 9}) write_cpu(tree, cpu, std::to_string(cpu), "8-9");
}

TEST(Topology, SysfsTellsCoresCachesAndNodes) {
  FakeTree tree;
  write_machine(tree);
  const Topology read = read_topology(first_cpus(10), Cores::read, tree.root());
  EXPECT_EQ(read, (Topology{{0, 0, 0, 0},
                            {1, 1, 0, 0},
                            {2, 2, 2, 0},
                            {3, 3, 2, 0},
                            {4, 0, 0, 0},
                            {5, 1, 0, 0},
                            {6, 2, 2, 0},
                            {7, 3, 2, 0},
                            {8, 8, 8, 1},
                            {9, 9, 8, 1}}));
}

TEST(Topology, OnlyTheCpusOfTheProcessCount) {
  FakeTree tree;
  write_machine(tree);
  const std::vector<int> ours = {4, 9};
  EXPECT_EQ(read_topology(ours, Cores::read, tree.root()), (Topology{{4, 0, 0, 0}, {9, 9, 8, 1}}));
}

TEST(Topology, AMachineThatTellsNothingIsFlat) {
  FakeTree tree;
  EXPECT_EQ(read_topology(first_cpus(3), Cores::read, tree.root()),
            (Topology{{0, 0, 0, 0}, {1, 1, 0, 0}, {2, 2, 0, 0}}));
}

TEST(Topology, FilesOfNonsenseTellNothing) {
  FakeTree tree;
  tree.write("/sys/devices/system/node/online", "0-\n");
  tree.write("/sys/devices/system/node/node0/cpulist", "\n");
  write_cpu(tree, 0, "what?", "-3");
  write_cpu(tree, 1, "99999999999999", "");
  EXPECT_EQ(read_topology(first_cpus(2), Cores::read, tree.root()),
            (Topology{{0, 0, 0, 0}, {1, 1, 0, 0}}));
}

TEST(Topology, AnOlderKernelNamesTheFileOfSiblingsDifferently) {
  FakeTree tree;
  for (const int cpu : {0, 1})
    tree.write(
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
        "0-1\n");
  EXPECT_EQ(read_topology(first_cpus(2), Cores::read, tree.root()),
            (Topology{{0, 0, 0, 0}, {1, 0, 0, 0}}));
}

TEST(Topology, ThisMachineIsReadWithoutAFailure) {
  EXPECT_EQ(read_topology(first_cpus(1), Cores::read).size(), 1u);
}

TEST(CpuList, IsNumbersAndRangesUpToTheFirstNonsense) {
  EXPECT_EQ(parse_cpu_list("0-2,7,9-9\n"), (std::vector<int>{0, 1, 2, 7, 9}));
  EXPECT_EQ(parse_cpu_list(""), std::vector<int>{});
  EXPECT_EQ(parse_cpu_list("3,x"), std::vector<int>{3});
  EXPECT_EQ(parse_cpu_list("5-1"), std::vector<int>{});
}

TEST(SyntheticTopology, LevelsMultiply) {
  const auto machine = parse_topology("node:2 l3:2 core:2 pu:2");
  ASSERT_TRUE(machine);
  ASSERT_EQ(machine->size(), 16u);
  EXPECT_EQ((*machine)[7], (Cpu{.number = 7, .core = 3, .cache = 1, .node = 0}));
  EXPECT_EQ((*machine)[8], (Cpu{.number = 8, .core = 4, .cache = 2, .node = 1}));
}

TEST(SyntheticTopology, LevelsMayBeLeftOut) {
  const auto machine = parse_topology("node:2 core:16");
  ASSERT_TRUE(machine);
  EXPECT_EQ(machine->size(), 32u);
  EXPECT_EQ((*machine)[15].node, 0);
  EXPECT_EQ((*machine)[16].node, 1);
  EXPECT_EQ((*machine)[15].cache, 0);
}

TEST(SyntheticTopology, NonsenseIsRefused) {
  for (const char* text : {"node", "node:", "node:0", "node:-1", "core:2 node:2", "node:2core:2",
                           "socket:2", "node:64 core:65", "node:2  core:2", "node:2 node:2"})
    EXPECT_FALSE(parse_topology(text)) << text;
}

// ---- homes

std::vector<int> cpus_of(const std::vector<Home>& homes) {
  std::vector<int> cpus;
  for (const Home& home : homes) cpus.push_back(home.cpu);
  return cpus;
}

TEST(Homes, PsOfACacheAndOfANodeAreConsecutive) {
  FakeTree tree;
  write_machine(tree);
  const auto homes = make_homes(read_topology(first_cpus(10), Cores::read, tree.root()), 10);
  EXPECT_EQ(cpus_of(homes), (std::vector<int>{0, 1, 4, 5, 2, 3, 6, 7, 8, 9}));
  EXPECT_EQ(homes[2].cache, (Range{0, 4}));
  EXPECT_EQ(homes[4].cache, (Range{4, 8}));
  EXPECT_EQ(homes[4].node, (Range{0, 8}));
  EXPECT_EQ(homes[8].cache, (Range{8, 10}));
  EXPECT_EQ(homes[8].node, (Range{8, 10}));
  EXPECT_EQ(homes[0].sibling, 2u);
  EXPECT_EQ(homes[2].sibling, 0u);
  EXPECT_EQ(homes[9].sibling, 9u);  // it has none
  EXPECT_FALSE(homes[0].is_flat);
}

TEST(Homes, FewPsHaveACoreEachAndFillOneNodeFirst) {
  const auto homes = make_homes(*parse_topology("node:2 core:4 pu:2"), 4);
  EXPECT_EQ(cpus_of(homes), (std::vector<int>{0, 2, 4, 6}));
  EXPECT_TRUE(homes[0].is_flat);
  const auto six = make_homes(*parse_topology("node:2 core:4 pu:2"), 6);
  EXPECT_EQ(cpus_of(six), (std::vector<int>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(six[5].node, (Range{4, 6}));
}

TEST(Homes, MorePsThanCpusGoRoundTheCpusOfTheirCache) {
  EXPECT_EQ(cpus_of(make_homes(*parse_topology("core:2"), 5)), (std::vector<int>{0, 1, 0, 1, 0}));
  const auto homes = make_homes(*parse_topology("node:2 core:2"), 8);
  EXPECT_EQ(cpus_of(homes), (std::vector<int>{0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(homes[0].sibling, 2u);
  EXPECT_EQ(homes[6].node, (Range{4, 8}));
}

TEST(Homes, WithoutCpusAllPsAreNear) {
  const auto homes = make_homes({}, 3);
  EXPECT_EQ(cpus_of(homes), (std::vector<int>{-1, -1, -1}));
  EXPECT_TRUE(homes[1].is_flat);
  EXPECT_EQ(homes[1].sibling, 1u);
}

// For any machine and any number of Ps: ranges are nested, agree with each other, and cover all.
TEST(Homes, RangesAgree) {
  for (const char* text : {"core:1", "node:2 core:16", "node:3 l3:5 core:3 pu:2", "l3:7 core:1",
                           "node:8 l3:2 core:4 pu:4"}) {
    for (std::uint32_t procs = 1; procs < 70; ++procs) {
      const auto homes = make_homes(*parse_topology(text), procs);
      ASSERT_EQ(homes.size(), procs);
      for (std::uint32_t p = 0; p < procs; ++p) {
        SCOPED_TRACE(std::string(text) + ", P " + std::to_string(p) + " of " +
                     std::to_string(procs));
        const Home& home = homes[p];
        EXPECT_TRUE(home.cache.has(p));
        EXPECT_TRUE(home.cache.has(home.sibling));
        EXPECT_LE(home.node.first, home.cache.first);
        EXPECT_GE(home.node.end, home.cache.end);
        for (std::uint32_t other = home.cache.first; other < home.cache.end; ++other)
          EXPECT_EQ(homes[other].cache, home.cache);
        for (std::uint32_t other = home.node.first; other < home.node.end; ++other)
          EXPECT_EQ(homes[other].node, home.node);
      }
    }
  }
}

}  // namespace
}  // namespace magpie::cpus
