// topology_test.cc: two nodes of 16 Ps in the simulation, under the product's policy.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

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
  EXPECT_LE(near.waits / static_cast<double>(near.latency.count()),
            1.05 * any.waits / static_cast<double>(any.latency.count()));
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
// drown while the other node lives on its own few. Without detours they wait 3.4 times as long as
// in random order.
TEST(TwoNodes, LoadCountsForMoreThanDistance) {
  const auto mean_wait = [](const std::string& changes) {
    lab::Setup setup = two_nodes(changes);
    setup.until = 10'000'000;
    HomeArrivals load(0.95, 5'000, 0.6);
    load.count_between(0, setup.until);
    const Result result = Machine(setup, load).run();
    return result.waits / static_cast<double>(result.latency.count());
  };
  EXPECT_LE(mean_wait(""), 1.6 * mean_wait("order=uniform"));
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
