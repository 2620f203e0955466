// real_test.cc: the simulation and the real runtime agree.
//
// recorded.h has what `magpie lab measure` measured, so that the comparison does not depend on
// what else the machine does. The live test measures again where others do not want the CPUs, or do
// not get them.

#include "lab/real.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <magpie/trace.h>
#include <sched.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lab/calibrate.h"
#include "lab/replay.h"
#include "trace/reader.h"
#include "unit/lab/recorded.h"

namespace magpie::lab {
namespace {

// What differs by more than 10 % in throughput or 25 % in p99; empty: nothing.
std::string differences(const Recorded& recorded) {
  std::ostringstream found;
  for (const Real& real : recorded.rows) {
    const Result result = simulate(real, recorded.costs);
    const double time = static_cast<double>(result.time) / static_cast<double>(real.time);
    const std::string where = real.load.name + " at " + std::to_string(real.procs) + " Ps: ";
    if (std::abs(time - 1) > 0.1) found << where << "time " << time << " of the real one\n";
    // Below a microsecond the two clock readings are most of what was measured.
    if (real.p99 < 1'000) continue;
    const double p99 =
        static_cast<double>(result.latency.quantile(0.99)) / static_cast<double>(real.p99);
    if (std::abs(p99 - 1) > 0.25) found << where << "p99 " << p99 << " of the real one\n";
  }
  return found.str();
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
  for (const std::uint32_t procs : {1u, 2u, 4u})
    EXPECT_EQ(std::ranges::count(recorded.rows, procs, &Real::procs), 3) << procs << " Ps";
  for (const Real& real : recorded.rows) EXPECT_GE(real.clean, 20) << real.load.name;
  EXPECT_EQ(differences(recorded), "");
}

// The calling thread, and those that it makes, go before all other programs, where this process may
// ask for that. One process at a time: threads of two would hold the CPUs and spin, each waiting
// for one that gets none. By SCHED_FIFO that would never end.
class BeforeOthers {
 public:
  BeforeOthers() : turn_(open(path().c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)) {
    while (turn_ >= 0 && flock(turn_, LOCK_EX) != 0 && errno == EINTR) continue;
    const sched_param first{.sched_priority = 10};
    is_granted_ = turn_ >= 0 && sched_setscheduler(0, SCHED_RR, &first) == 0;
  }
  ~BeforeOthers() {
    const sched_param usual{.sched_priority = 0};
    if (is_granted_) sched_setscheduler(0, SCHED_OTHER, &usual);
    if (turn_ >= 0) close(turn_);
  }
  BeforeOthers(const BeforeOthers&) = delete;
  BeforeOthers& operator=(const BeforeOthers&) = delete;
  bool is_granted() const { return is_granted_; }

 private:
  static std::string path() {
    return testing::TempDir() + "magpie-before-others-" + std::to_string(getuid());
  }

  int turn_;
  bool is_granted_;
};

TEST(LabAndRuntime, AgreeOnThisMachine) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers change the costs";
#endif
  const BeforeOthers first;
  if (!first.is_granted() && cpu_pressure() > 1) GTEST_SKIP() << "other programs want the CPUs";
  // A hypervisor may take a CPU away and tell nobody. So one of a few measurements has to agree.
  std::string found;
  bool is_measured = false;
  for (int i = 0; i < 5 && (!is_measured || !found.empty()); ++i) {
    Recorded recorded = measure_all({1, 2, 4}, 60);
    if (!first.is_granted() && cpu_pressure() > 1)
      GTEST_SKIP() << "other programs came to want the CPUs";
    std::ostringstream report;
    print_measured(report, recorded);
    std::printf("%s", report.str().c_str());
    const bool has_all = std::ranges::all_of(
        recorded.rows, [](const Real& real) { return real.procs > 2 || real.clean >= 20; });
    if (!has_all) continue;
    is_measured = true;
    found = differences(recorded);
  }
  if (!is_measured) GTEST_SKIP() << "other programs, or the host, took the CPUs";
  EXPECT_EQ(found, "");
}

// Batches of goroutines, of which one in twenty takes ten times as long, on two Ps.
void record_batches(const std::string& path) {
  const auto compute = [](int steps) {
    for (int i = 0; i < steps; ++i) asm volatile("" ::: "memory");
  };
  run(Options{.procs = 2}, [&] {
    trace::start(path);
    for (int batch = 0; batch < 30; ++batch) {
      WaitGroup all;
      for (int i = 0; i < 200; ++i) all.go([&, i] { compute(i % 20 == 0 ? 60'000 : 6'000); });
      all.wait();
      sleep_for(std::chrono::milliseconds(1));
    }
    trace::stop();
  });
}

TEST(LabAndRuntime, AReplayUnderTheProductsPolicySaysHowLongTheTracedGoroutinesWaited) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers change the costs";
#endif
  const BeforeOthers first;
  if (!first.is_granted() && cpu_pressure() > 1) GTEST_SKIP() << "other programs want the CPUs";
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "the two Ps have one CPU";
  const std::string path = testing::TempDir() + "replay-" + std::to_string(getpid()) + ".trace";
  lab::Setup setup;
  setup.procs = 2;
  setup.costs = calibrate();
  double p50 = 0, p99 = 0;  // of the replay, as parts of the measured ones
  const auto is_near = [](double part) { return std::abs(part - 1) <= 0.25; };
  // A tenth of a second each. One of many has to agree, as other tests run beside this one.
  for (int i = 0; i < 100 && !(is_near(p50) && is_near(p99)); ++i) {
    record_batches(path);
    std::string error;
    std::optional<trace::Reader> reader = trace::Reader::open(path, error);
    ASSERT_TRUE(reader) << error;
    const Recording recording = record(*reader);
    EXPECT_GE(recording.goroutines(), 6'000u);
    const Result result = replay(recording, setup);
    const auto part = [&](double quantile) {
      return static_cast<double>(result.latency.quantile(quantile)) /
             static_cast<double>(recording.latency().quantile(quantile));
    };
    p50 = part(0.5), p99 = part(0.99);
  }
  unlink(path.c_str());
  EXPECT_NEAR(p50, 1, 0.25);
  EXPECT_NEAR(p99, 1, 0.25);
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
