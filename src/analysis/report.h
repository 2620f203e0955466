// report.h: a Summary in words: the text of `magpie trace summary` and the findings of `magpie
// doctor`.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "analysis/summary.h"

namespace magpie::analysis {

using NameOfCode = std::function<std::string(std::uint64_t pc)>;

// 1.23 us, 45.6 ms, 7.8 s: three digits that count.
std::string duration_text(std::int64_t ns);

struct ReportOptions {
  std::size_t rows = 10;  // of each table
  NameOfCode name;
};
void print_summary(std::ostream& out, const Summary& summary, const ReportOptions& options);

// What hurts, what shows it, and what to change.
struct Finding {
  enum class Weight : std::uint8_t { note, warning, fault };
  Weight weight = Weight::note;
  std::string id;  // a short word for tests and scripts: "lost-wake-up", "blocked-p", ...
  std::string what;
  std::string shown_by;
  std::string advice;
};

// How a process got along with its CPU quota for a while.
struct QuotaUse {
  std::uint64_t periods = 0, throttled_periods = 0;
  std::int64_t throttled_ns = 0;  // summed over its CPUs
  double quota = 0;               // in CPUs; 0: unknown
};
// None if the quota does not hurt. procs: how many Ps there are; 0: unknown.
std::optional<Finding> finding_of(const QuotaUse& use, int procs);

std::vector<Finding> examine(const Summary& summary, const NameOfCode& name);
void print_findings(std::ostream& out, const std::vector<Finding>& findings);

}  // namespace magpie::analysis
