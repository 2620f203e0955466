// report.h: results of simulations as a table, as JSON and as a plot.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "lab/machine.h"

namespace magpie::lab {

struct Row {
  std::string load, policy;
  std::uint32_t procs = 1;
  Result result;
};

struct Header {
  std::string command;
  Costs costs;
  std::uint64_t seed = 1;
  std::string topology;  // empty: all Ps are near each other
};

void print_table(std::ostream& out, const Header& header, const std::vector<Row>& rows);
void print_json(std::ostream& out, const Header& header, const std::vector<Row>& rows);

// What a plot shows, by its name: time, steals, p50, p99, fairness, cost, searching, wait (the
// mean) or far (steals). Throws std::invalid_argument with the names that there are.
double value_of(const Row& row, const std::string& name);
const std::vector<std::string>& value_names();

// A small plot per value and load, over the number of Ps; a line per policy.
void print_svg(std::ostream& out, const Header& header, const std::vector<Row>& rows,
               const std::vector<std::string>& values);

// Changes a cost by its name, as in "wake=5000".
void set(Costs& costs, const std::string& assignment);

}  // namespace magpie::lab
