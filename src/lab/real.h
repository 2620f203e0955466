// real.h: loads of the lab on the real runtime, to compare the simulation with.
//
// A run counts only if the kernel let it have its CPUs: its threads waited for a CPU (run_delay of
// /proc/self/task/*/schedstat) for less than a twentieth of the run. On a busy machine few runs do,
// or none; then there is nothing to compare, and `clean` says so. With more Ps than CPUs all runs
// count: the threads wait for each other, and the rows with fewer Ps tell how busy the machine was.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "lab/costs.h"
#include "lab/machine.h"

namespace magpie::lab {

struct RealLoad {
  std::string name;  // burst, fork-join or ping-pong
  std::uint64_t count = 0;
  Ns work = 0;
};
const std::vector<RealLoad>& real_loads();

struct Real {
  RealLoad load;
  std::uint32_t procs = 1, cpus = 1;
  int clean = 0, runs = 0;
  Ns time = 0, p50 = 0, p99 = 0;  // the medians of the clean runs
};

struct Recorded {
  Costs costs;
  std::vector<Real> rows;
};

// Not from inside magpie::run(). Measures the costs first.
Recorded measure_all(const std::vector<int>& procs, int runs);
// The same load under the product's policy.
Result simulate(const Real& real, const Costs& costs);

// Lines of name=value pairs; read_recorded() reads what print_measured() wrote, and throws
// std::invalid_argument at anything else.
void print_measured(std::ostream& out, const Recorded& recorded);
Recorded read_recorded(std::istream& in);

}  // namespace magpie::lab
