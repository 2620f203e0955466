// measure.h: stands before ../../support/measure.h when a workload is built for bench/scaling. The
// workload stays as it is; time_ns() also counts the steals of the time that it measures.
//
// A program measures several stretches: a cold round, a sequential one, the warm round. report()
// adds a line, steals_per_second, of the last stretch before the result that bench/scaling reads.
#pragma once

#include <magpie/runtime.h>
#include <magpie/stats.h>

#include <cstdint>
#include <string_view>

#define time_ns plain_time_ns
#define report plain_report
#include "../../support/measure.h"
#undef time_ns
#undef report

namespace bench {

struct Stretch {
  double seconds = 0;
  std::uint64_t steals = 0, stolen = 0, wakes = 0;
};

inline Stretch& last_stretch() {
  static Stretch stretch;
  return stretch;
}

template <class F>
double time_ns(F f) {
  const magpie::Stats before = magpie::stats();
  const double ns = plain_time_ns(f);
  const magpie::Stats after = magpie::stats();
  last_stretch() = {ns / 1e9, after.total.steals_succeeded - before.total.steals_succeeded,
                    after.total.goroutines_stolen - before.total.goroutines_stolen,
                    after.total.wakes - before.total.wakes};
  return ns;
}

// The names under which workloads report what counts.
inline bool is_result(std::string_view key) {
  return key == "ns_per_op" || key == "ms" || key == "parallel_ms";
}

inline void report(const char* key, double value) {
  plain_report(key, value);
  const Stretch& stretch = last_stretch();
  if (!is_result(key) || stretch.seconds <= 0) return;
  plain_report("steals_per_second", static_cast<double>(stretch.steals) / stretch.seconds);
  plain_report("stolen_per_second", static_cast<double>(stretch.stolen) / stretch.seconds);
  plain_report("wakes_per_second", static_cast<double>(stretch.wakes) / stretch.seconds);
}

}  // namespace bench
