#include "analysis/summary.h"

#include <cstdint>
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

// Clocks of a damaged trace may be anything, so sums of times may leave the type: they wrap.
constexpr std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
constexpr std::int64_t wrapping_difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

Parts& Parts::operator+=(const Parts& other) {
  for (int i = 0; i < kParts; ++i) ns[i] = wrapping_sum(ns[i], other.ns[i]);
  return *this;
}

Parts Parts::operator-(const Parts& other) const {
  Parts difference;
  for (int i = 0; i < kParts; ++i) difference.ns[i] = wrapping_difference(ns[i], other.ns[i]);
  return difference;
}

std::int64_t Parts::sum() const {
  return std::accumulate(ns.begin(), ns.end(), std::int64_t{0}, wrapping_sum);
}

std::int64_t WorkConservation::total_ns() const {
  return std::accumulate(wasted_ns.begin(), wasted_ns.end(), std::int64_t{0}, wrapping_sum);
}

}  // namespace magpie::analysis
