#include "metrics.h"

#include <magpie/stats.h>

#include <algorithm>
#include <mutex>
#include <sstream>

namespace notes {

void Metrics::count_request(const std::string& route, int status, std::chrono::nanoseconds took) {
  const double seconds = std::chrono::duration<double>(took).count();
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin();
  std::lock_guard hold(mutex_);
  ++requests_[{route, status}];
  Histogram& histogram = seconds_[route];
  ++histogram.buckets[static_cast<std::size_t>(bucket)];
  histogram.sum += seconds;
}

void Metrics::count_cache(bool hit) {
  std::lock_guard hold(mutex_);
  ++(hit ? cache_hits_ : cache_misses_);
}

std::string Metrics::text() const {
  const magpie::Stats runtime = magpie::stats();
  std::ostringstream out;
  out << "# TYPE notes_goroutines gauge\nnotes_goroutines " << runtime.goroutines
      << "\n# TYPE notes_threads gauge\nnotes_threads " << runtime.threads
      << "\n# TYPE notes_steals_total counter\nnotes_steals_total "
      << runtime.total.steals_succeeded << "\n";

  std::lock_guard hold(mutex_);
  out << "# TYPE notes_cache_total counter\n"
      << "notes_cache_total{found=\"yes\"} " << cache_hits_ << "\n"
      << "notes_cache_total{found=\"no\"} " << cache_misses_ << "\n";
  out << "# TYPE notes_requests_total counter\n";
  for (const auto& [what, count] : requests_) {
    out << "notes_requests_total{route=\"" << what.first << "\",status=\"" << what.second << "\"} "
        << count << "\n";
  }
  out << "# TYPE notes_request_seconds histogram\n";
  for (const auto& [route, histogram] : seconds_) {
    const std::string name = "{route=\"" + route + "\"";
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < kBounds.size(); ++i) {
      below += histogram.buckets[i];
      out << "notes_request_seconds_bucket" << name << ",le=\"" << kBounds[i] << "\"} " << below
          << "\n";
    }
    below += histogram.buckets.back();
    out << "notes_request_seconds_bucket" << name << ",le=\"+Inf\"} " << below << "\n"
        << "notes_request_seconds_sum" << name << "} " << histogram.sum << "\n"
        << "notes_request_seconds_count" << name << "} " << below << "\n";
  }
  return out.str();
}

}  // namespace notes
