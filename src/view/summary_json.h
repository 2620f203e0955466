// summary_json.h: what a whole trace says, in the JSON of the page's panels.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "analysis/summary.h"

namespace magpie::view {

using SiteText = std::function<std::string(std::uint64_t pc)>;

std::string summary_json(const analysis::Summary& summary, const SiteText& site_text);
// The wait-for graph at the end of the trace.
std::string waits_json(const analysis::Summary& summary, const SiteText& site_text);

}  // namespace magpie::view
