// counters.h: the counters of a P, by name: in JSON, and as metrics.
#pragma once

#include <cstdint>
#include <span>

#include <magpie/stats.h>

namespace magpie::view {

struct Counter {
  const char* name;  // as in ProcStats; the metric is magpie_<name>_total
  std::uint64_t ProcStats::*value;
  const char* help;
};

// All of them, in the order of ProcStats.
std::span<const Counter> counters();

}  // namespace magpie::view
