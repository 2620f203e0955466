// metrics.h: magpie::stats() in Prometheus' text format, version 0.0.4.
#pragma once

#include <string>

#include <magpie/stats.h>

#include "view/latency_probe.h"

namespace magpie::view {

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

std::string metrics(const Stats& stats, const Lateness& lateness);

}  // namespace magpie::view
