// default_procs.cc: see default_procs.h.

#include "cpus/default_procs.h"

#include <algorithm>
#include <cmath>

namespace magpie::cpus {

int default_procs(int affinity, std::optional<double> quota) {
  affinity = std::max(1, affinity);
  // Compared before it becomes an int, because a huge quota would not fit. Written so that not a
  // number counts as no quota.
  if (!quota || !(*quota < affinity)) return affinity;
  const double at_least_two = std::max(2.0, std::ceil(*quota));
  return std::min(affinity, static_cast<int>(at_least_two));
}

}  // namespace magpie::cpus
