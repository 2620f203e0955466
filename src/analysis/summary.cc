#include "analysis/summary.h"

#include <numeric>

namespace magpie::analysis {

const char* text(Part part) {
  static constexpr const char* kNames[kParts] = {
      "blocked",     "ring",          "global queue", "runnext slot", "with a thief",
      "off the CPU", "running",       "stopped",      "inbox",        "urgent line",
      "fresh",       "blocking call", "without a P",  "unknown"};
  const auto index = static_cast<std::size_t>(part);
  return index < kParts ? kNames[index] : "";
}

const char* text(Cause cause) {
  static constexpr const char* kNames[kCauses] = {
      "no thread was woken",
      "a woken thread was not on a CPU yet",
      "threads are woken one at a time",
      "a thread was still searching",
      "a thread between two goroutines had not looked yet",
      "in the runnext slot of a busy P",
      "in a line that others may not take from",
      "the P was being handed over",
      "the world was stopped",
  };
  const auto index = static_cast<std::size_t>(cause);
  return index < kCauses ? kNames[index] : "";
}

Parts& Parts::operator+=(const Parts& other) {
  for (int i = 0; i < kParts; ++i) ns[i] += other.ns[i];
  return *this;
}

Parts Parts::operator-(const Parts& other) const {
  Parts difference;
  for (int i = 0; i < kParts; ++i) difference.ns[i] = ns[i] - other.ns[i];
  return difference;
}

std::int64_t Parts::sum() const { return std::accumulate(ns.begin(), ns.end(), std::int64_t{0}); }

std::int64_t WorkConservation::total_ns() const {
  return std::accumulate(wasted_ns.begin(), wasted_ns.end(), std::int64_t{0});
}

}  // namespace magpie::analysis
