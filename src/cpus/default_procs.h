// default_procs.h: how many procs to run when the user did not say.
//
//     min(affinity, max(2, ceil(quota)))          without a quota: affinity
//
// Why round up   A quota is CPU time per period, not a set of CPUs. With 2.5 CPUs' worth of time,
//                two procs could never use it up; three can, and the kernel throttles the excess.
// Why at least 2 For the same reason a quota of 1 or less does not mean that only one CPU may run
//                us at a time: two threads may each run for half of the period. With a single proc
//                all parallelism is gone, and a goroutine that computes for long delays every
//                other one by whole time slices although a CPU stands idle next to it. A second
//                proc costs little and lets short work pass by long work.
// Why not above  The affinity mask is a hard fact: a second proc on a single CPU runs nothing in
//                parallel, it only adds thread switches. So the 2 never lifts us above the mask.

#pragma once

#include <optional>

namespace magpie::cpus {

// `affinity`: from affinity_cpus(). `quota`: from QuotaReader::read(), in CPUs' worth of time.
// Always at least 1.
[[nodiscard]] int default_procs(int affinity, std::optional<double> quota);

}  // namespace magpie::cpus
