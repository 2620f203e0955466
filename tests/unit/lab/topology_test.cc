// topology_test.cc: machines of several nodes and caches in the simulation, under the product's
// policy.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "lab/loads.h"
#include "lab/machine.h"
#include "lab/policy.h"

namespace magpie::lab {
namespace {

Setup two_nodes(const std::string& changes = "") {
  Setup setup;
  setup.procs = 32;
  setup.topology.group = 16;
  setup.policy = policy_of(changes);
  return setup;
}

double far_share(const Result& result) {
  return static_cast<double>(result.far_steals) / static_cast<double>(result.steals);
}

// Each P has as much to do as any other, and steals come from chance alone.
Result steady(double busy, Ns work, const std::string& changes = "") {
  Setup setup = two_nodes(changes);
  setup.until = 5'000'000;
  HomeArrivals load(busy, work);
  load.count_between(0, setup.until);
  return Machine(setup, load).run();
}

TEST(TwoNodes, AtMostAFewStealsAreFarInASteadyState) {
  for (const double busy : {0.5, 0.7, 0.9, 0.95}) {
    for (const Ns work : {1'000, 5'000}) {
      const Result result = steady(busy, work);
      EXPECT_GT(result.steals, 1000u);
      EXPECT_LE(far_share(result), 0.05) << "busy " << busy << ", work " << work;
    }
  }
  EXPECT_GT(far_share(steady(0.7, 5'000, "order=uniform")), 0.4);
}

TEST(TwoNodes, NearFirstDoesNotMakeGoroutinesWaitLonger) {
  const Result near = steady(0.9, 5'000), any = steady(0.9, 5'000, "order=uniform");
  EXPECT_LE(near.mean_wait(), 1.05 * any.mean_wait());
}

// All goroutines stand in the ring of the first P.
TEST(TwoNodes, ALopsidedStartReachesNearlyTheIdeal) {
  constexpr std::uint64_t kCount = 20'000;
  constexpr Ns kWork = 20'000;
  lab::Setup setup = two_nodes();
  setup.policy.slots = 1 << 16;
  setup.all_awake = true;
  Heap load(kCount, kWork);
  const Result result = Machine(setup, load).run();
  const double ideal = static_cast<double>(kCount * kWork) / setup.procs;
  EXPECT_GE(ideal / static_cast<double>(result.time), 0.95);
  EXPECT_GT(result.far_steals, 0u);
}

// The first node gets four times what the other gets, more than it can do. Its goroutines must not
// drown while the other node lives on its own few, as they do without detours.
TEST(TwoNodes, LoadCountsForMoreThanDistance) {
  const auto mean_wait = [](const std::string& changes) {
    lab::Setup setup = two_nodes(changes);
    setup.until = 10'000'000;
    HomeArrivals load(0.95, 5'000, 0.6);
    load.count_between(0, setup.until);
    const Result result = Machine(setup, load).run();
    return result.mean_wait();
  };
  EXPECT_LE(mean_wait(""), 1.6 * mean_wait("order=uniform"));
  EXPECT_GE(mean_wait("detours=off"), 2 * mean_wait("order=uniform"));
}

// ---- other machines: nodes and caches

struct Shape {
  const char* name;
  const char* levels;
  std::uint32_t procs;
  double far_steals;  // of all steals in a steady state, at most
  double far_shared;  // the same of goroutines that are taken from the global queue
};

// In nodes of 8 it happens twice as often as in nodes of 16 that nothing waits near by while
// something waits far away. A thief that left it there would leave its P idle.
class OnMachine : public testing::TestWithParam<Shape> {
 protected:
  lab::Setup setup(const std::string& changes = "") const {
    lab::Setup made;
    made.procs = GetParam().procs;
    made.topology = topology_of(GetParam().levels, made.procs);
    made.policy = policy_of(changes);
    return made;
  }
  Result steady(double busy, Ns work, const std::string& changes = "") const {
    lab::Setup made = setup(changes);
    made.until = 5'000'000;
    HomeArrivals load(busy, work);
    load.count_between(0, made.until);
    return Machine(made, load).run();
  }
};
INSTANTIATE_TEST_SUITE_P(
    On, OnMachine,
    testing::Values(Shape{"TwoNodesOf16", "node:2 core:16", 32, 0.05, 0.2},
                    Shape{"TwoNodesOf16Threads", "node:2 core:8 pu:2", 32, 0.05, 0.2},
                    Shape{"TwoNodesOf4Caches", "node:2 l3:4 core:4", 32, 0.07, 0.2},
                    Shape{"FourNodesOf16", "node:4 core:16", 64, 0.06, 0.4},
                    Shape{"FourNodesOf4Caches", "node:4 l3:4 core:4", 64, 0.08, 0.4},
                    Shape{"FourNodesOf8", "node:4 core:8", 32, 0.2, 0.4}),
    [](const auto& shape) { return shape.param.name; });

TEST_P(OnMachine, AtMostAFewStealsAreFarInASteadyState) {
  for (const double busy : {0.7, 0.9}) {
    for (const Ns work : {1'000, 5'000}) {
      const Result result = steady(busy, work);
      EXPECT_GT(result.steals, 1000u);
      EXPECT_LE(far_share(result), GetParam().far_steals) << "busy " << busy << ", work " << work;
    }
  }
}

TEST_P(OnMachine, NearFirstIsAnOrderOfItsNodes) {
  EXPECT_LE(far_share(steady(0.9, 5'000, "order=near-first")),
            0.6 * far_share(steady(0.9, 5'000, "order=uniform")));
}

TEST_P(OnMachine, HalfOfTheStealsAreUnderTheSameCache) {
  const Result result = steady(0.9, 5'000);
  EXPECT_GE(static_cast<double>(result.cache_steals), 0.5 * static_cast<double>(result.steals));
}

TEST_P(OnMachine, ALopsidedStartReachesNearlyTheIdeal) {
  constexpr Ns kWork = 20'000;
  for (const std::uint64_t slots : {256u, 1u << 16}) {
    lab::Setup made = setup();
    made.policy.slots = slots;
    made.all_awake = true;
    const std::uint64_t count = 625 * made.procs;
    Heap load(count, kWork);
    const Result result = Machine(made, load).run();
    const double ideal = static_cast<double>(count * kWork) / made.procs;
    EXPECT_GE(ideal / static_cast<double>(result.time), 0.95) << slots << " slots";
  }
}

// One goroutine starts all others. Its P spills them to the shard of its node.
TEST_P(OnMachine, WhatOneNodeSpillsReachesAllNodes) {
  lab::Setup made = setup();
  const std::uint64_t count = 625 * made.procs;
  const auto load = make_load("burst", {count, 20'000, 0}, made.procs);
  const Result result = Machine(made, *load).run();
  const double ideal = static_cast<double>(count * 20'000) / made.procs;
  EXPECT_GT(result.spills, 0u);
  EXPECT_GT(result.far_shared, 0u);
  EXPECT_GE(ideal / static_cast<double>(result.time), 0.9);
}

// Each P starts a batch now and then that its ring cannot hold.
TEST_P(OnMachine, InASteadyStateAPTakesWhatItsOwnNodeSpilled) {
  lab::Setup made = setup();
  made.policy.slots = 8;
  made.until = 20'000'000;
  HomeBatches load(0.8, 5'000, 32);
  const Result result = Machine(made, load).run();
  EXPECT_GT(result.shared, 10'000u);
  EXPECT_LE(static_cast<double>(result.far_shared),
            GetParam().far_shared * static_cast<double>(result.shared));
}

// Go spends 41 % of its CPU searching at 56 Ps with about 10 busy CPUs.
TEST(Search, CostsTheSameHoweverManyPsAreIdle) {
  const auto probes = [](std::uint32_t procs) {
    lab::Setup setup;
    setup.procs = procs;
    setup.until = 5'000'000;
    LoadOptions options;
    options.busy = 8.0 / procs;
    options.count = 1'000'000;
    const auto load = make_load("requests", options, procs);
    const Result result = Machine(setup, *load).run();
    return static_cast<double>(result.probes) / static_cast<double>(result.searches);
  };
  EXPECT_LE(probes(256), 1.5 * probes(32) + 4);
}

}  // namespace
}  // namespace magpie::lab
