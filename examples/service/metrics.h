// metrics.h: what Prometheus asks for.
#pragma once

#include <magpie/mutex.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace notes {

class Metrics {
 public:
  void count_request(const std::string& route, int status, std::chrono::nanoseconds took);
  void count_cache(bool hit);
  // In Prometheus' text format.
  std::string text() const;

 private:
  static constexpr std::array<double, 8> kBounds{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5};
  struct Histogram {
    std::array<std::uint64_t, kBounds.size() + 1> buckets{};
    double sum = 0;
  };

  mutable magpie::Mutex mutex_;
  // guarded by mutex_
  std::map<std::pair<std::string, int>, std::uint64_t> requests_;
  std::map<std::string, Histogram> seconds_;
  std::uint64_t cache_hits_ = 0, cache_misses_ = 0;
};

}  // namespace notes
