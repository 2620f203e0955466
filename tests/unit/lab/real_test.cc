// real_test.cc: the simulation and the real runtime agree.
//
// recorded.h has what `magpie lab measure` measured, so that the comparison does not depend on
// what else the machine does. The live test measures again where nothing else wants the CPUs.

#include "lab/real.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "unit/lab/recorded.h"

namespace magpie::lab {
namespace {

void expect_agreement(const Recorded& recorded) {
  for (const Real& real : recorded.rows) {
    const Result result = simulate(real, recorded.costs);
    const std::string where = real.load.name + " at " + std::to_string(real.procs) + " Ps";
    EXPECT_NEAR(static_cast<double>(result.time) / static_cast<double>(real.time), 1, 0.1)
        << where << ": throughput";
    // Below a microsecond the two clock readings are most of what was measured.
    if (real.p99 < 1'000) continue;
    const auto p99 = static_cast<double>(result.latency.quantile(0.99));
    EXPECT_NEAR(p99 / static_cast<double>(real.p99), 1, 0.25) << where << ": p99";
  }
}

// The share of the last ten seconds in which a program waited for a CPU, in percent; 100: unknown.
double cpu_pressure() {
  std::ifstream file("/proc/pressure/cpu");
  std::string word;
  while (file >> word)
    if (word.rfind("avg10=", 0) == 0) return std::stod(word.substr(6));
  return 100;
}

TEST(LabAndRuntime, AgreeOnWhatWasRecorded) {
  std::istringstream text{std::string(kRecorded)};
  const Recorded recorded = read_recorded(text);
  ASSERT_GE(recorded.rows.size(), 3u);
  for (const Real& real : recorded.rows) EXPECT_GE(real.clean, 5) << real.load.name;
  expect_agreement(recorded);
}

TEST(LabAndRuntime, AgreeOnAnIdleMachine) {
  if (cpu_pressure() > 1) GTEST_SKIP() << "other programs want the CPUs";
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers change the costs";
#endif
  const int cpus = static_cast<int>(std::thread::hardware_concurrency());
  Recorded recorded = measure_all(cpus > 1 ? std::vector<int>{1, 2} : std::vector<int>{1}, 40);
  if (cpu_pressure() > 1) GTEST_SKIP() << "other programs came to want the CPUs";
  std::ostringstream report;
  print_measured(report, recorded);
  std::printf("%s", report.str().c_str());
  // More Ps are reported only: a hypervisor may take a CPU away and tell nobody.
  std::erase_if(recorded.rows, [](const Real& real) { return real.procs > 1 || real.clean < 20; });
  expect_agreement(recorded);
}

TEST(LabAndRuntime, ARecordingIsReadAsItWasWritten) {
  Recorded recorded;
  recorded.costs.wake = 12'345;
  Real real;
  real.load = {"burst", 10, 100};
  real.procs = 2;
  real.clean = 7;
  real.time = 1'000;
  recorded.rows.push_back(real);
  std::stringstream text;
  print_measured(text, recorded);
  const Recorded read = read_recorded(text);
  EXPECT_EQ(read.costs.wake, 12'345);
  ASSERT_EQ(read.rows.size(), 1u);
  EXPECT_EQ(read.rows[0].load.name, "burst");
  EXPECT_EQ(read.rows[0].time, 1'000);
  std::istringstream garbage("real nonsense");
  EXPECT_THROW(read_recorded(garbage), std::invalid_argument);
}

}  // namespace
}  // namespace magpie::lab
