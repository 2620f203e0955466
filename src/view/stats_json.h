// stats_json.h: magpie::stats() as JSON.
#pragma once

#include <string>

#include <magpie/stats.h>

#include "view/latency_probe.h"

namespace magpie::view {

// `time_ns` is the steady clock's, so that a client can turn counters into rates.
std::string stats_json(const Stats& stats, const Lateness& lateness, std::int64_t time_ns);

}  // namespace magpie::view
