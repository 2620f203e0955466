// machine_test.cc: what the simulated machine does with goroutines.

#include "lab/machine.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "lab/loads.h"

namespace magpie::lab {
namespace {

Result simulate(const std::string& name, std::uint32_t procs, const std::string& changes = "",
                const LoadOptions& options = {}, std::uint64_t seed = 1) {
  lab::Setup setup;
  setup.procs = procs;
  setup.policy = policy_of(changes);
  setup.seed = seed;
  const auto load = make_load(name, options, procs);
  return Machine(setup, *load).run();
}

TEST(LabMachine, EveryGoroutineOfEveryLoadEndsUnderEveryPolicy) {
  for (const LoadInfo& info : loads()) {
    for (const Alternative& alternative : alternatives()) {
      for (std::uint32_t procs : {1u, 3u, 16u}) {
        const Result result = simulate(info.name, procs, alternative.changes, {400, 0, 0.7});
        const std::string where = info.name + ", " + alternative.name;
        EXPECT_GT(result.ended, 0u) << where;
        EXPECT_EQ(result.latency.count(), result.turns) << where;
        EXPECT_LE(result.computing, result.time * procs) << where;
        const std::uint64_t all = info.name == "burst"       ? 401
                                  : info.name == "requests"  ? 400
                                  : info.name == "ping-pong" ? 4 * procs + 1
                                  : info.name == "timers"    ? 256 * procs + 1
                                  : info.name == "fork-join" ? 1023
                                                             : result.ended;
        EXPECT_EQ(result.ended, all) << where;
      }
    }
  }
}

// Of the loads that have a chance of their own: as many goroutines as were asked for.
TEST(LabMachine, LoadsAtHomeEndAfterTheirCount) {
  EXPECT_EQ(simulate("at-home", 8, "", {1'000, 0, 0.7}).ended, 1'000u);
  EXPECT_EQ(simulate("home-batches", 8, "", {3'200, 0, 0.7}).ended, 3'300u);
}

TEST(LabMachine, EqualSeedsGiveEqualResults) {
  for (const LoadInfo& info : loads()) {
    const Result first = simulate(info.name, 8, "", {500, 0, 0.7}, 7);
    const Result second = simulate(info.name, 8, "", {500, 0, 0.7}, 7);
    EXPECT_EQ(first.time, second.time) << info.name;
    EXPECT_EQ(first.probes, second.probes) << info.name;
    EXPECT_EQ(first.latency.quantile(0.99), second.latency.quantile(0.99)) << info.name;
  }
  EXPECT_NE(simulate("requests", 8, "", {500, 0, 0.7}, 7).time,
            simulate("requests", 8, "", {500, 0, 0.7}, 8).time);
}

TEST(LabMachine, OnePRunsABurstInTheOrderOfTheProduct) {
  const Result result = simulate("burst", 1, "", {100, 1'000, 0});
  const Costs costs;
  EXPECT_EQ(result.steals, 0u);
  EXPECT_EQ(result.computing, 100'000);
  // The last one waits for all others: first in, first out, but for the one in runnext.
  EXPECT_NEAR(static_cast<double>(result.latency.largest()),
              99.0 * (1'000 + static_cast<double>(costs.pop + costs.switching)) +
                  100.0 * static_cast<double>(costs.spawn),
              3'000);
}

TEST(LabMachine, MorePsRunABurstFaster) {
  const Result one = simulate("burst", 1, "", {4'000, 10'000, 0});
  const Result four = simulate("burst", 4, "", {4'000, 10'000, 0});
  EXPECT_NEAR(static_cast<double>(one.time) / static_cast<double>(four.time), 4, 0.3);
  EXPECT_GT(simulate("burst", 4, "", {200, 10'000, 0}).steals, 0u);  // all fit the ring
}

TEST(LabMachine, TwoCpusRunFourPsAsFastAsTwo) {
  lab::Setup setup;
  setup.procs = 4;
  setup.cpus = 2;
  const auto shared = make_load("burst", {4'000, 10'000, 0}, 4);
  const Result result = Machine(setup, *shared).run();
  EXPECT_EQ(result.ended, 4'001u);
  const Result two = simulate("burst", 2, "", {4'000, 10'000, 0});
  EXPECT_NEAR(static_cast<double>(result.time) / static_cast<double>(two.time), 1, 0.2);
}

TEST(LabMachine, ThrottlingWakesOneSearcherAtATime) {
  const Result throttled = simulate("batches", 16, "", {4'000, 0, 0.5});
  const Result herd = simulate("batches", 16, "throttle=off", {4'000, 0, 0.5});
  EXPECT_LT(throttled.wakes, herd.wakes);
}

// A goroutine starts another, which stands in runnext, and computes for long.
class Starter : public Load {
 public:
  void begin(Machine& machine) override { machine.start_at(0, first_ = machine.make()); }
  Step step(Machine& machine, TaskId task) override {
    if (task != first_) return {1'000, What::end};
    if (++steps_ == 1) return {0, What::spawn, machine.make()};
    return {1'000'000, What::end};
  }

 private:
  TaskId first_ = kNoTask;
  int steps_ = 0;
};

TEST(LabMachine, AThiefTakesRunnextFromAPThatComputesUnlessThePolicyForbidsIt) {
  const auto run = [](const char* changes) {
    lab::Setup setup;
    setup.procs = 2;
    setup.policy = policy_of(changes);
    Starter load;
    return Machine(setup, load).run();
  };
  const Result late = run(""), at_once = run("runnext=at-once"), never = run("runnext=never");
  EXPECT_EQ(late.runnext_stolen, 1u);
  EXPECT_EQ(at_once.runnext_stolen, 1u);
  EXPECT_EQ(never.runnext_stolen, 0u);
  EXPECT_LT(at_once.latency.largest() + 2'000, late.latency.largest());
  EXPECT_LT(late.latency.largest(), 100'000);
  EXPECT_GT(never.latency.largest(), 1'000'000);
}

TEST(LabPolicy, NamesWhatThereIsWhenAChangeIsWrong) {
  Policy policy;
  for (const char* wrong : {"amount=most", "colour=red", "least=0", "look=x", "amount"})
    EXPECT_THROW(set(policy, wrong), std::invalid_argument) << wrong;
  EXPECT_THROW(make_load("storm", {}, 1), std::invalid_argument);
}

TEST(LabPolicy, TheDefaultIsTheDecisionOfTheProduct) {
  const Policy policy;
  for (std::uint64_t waiting : {1u, 2u, 3u, 100u, 255u})
    EXPECT_EQ(policy.to_steal(waiting), sched::policy::to_steal(waiting));
  EXPECT_EQ(policy.look_every, sched::policy::kLookEvery);
}

}  // namespace
}  // namespace magpie::lab
