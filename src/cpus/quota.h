// quota.h: how much CPU time the cgroups of this process grant it, in CPUs' worth of time.
//
//     read() --> /proc/self/cgroup --same as before?--> read the known files --> smallest
//                      |                                     |
//                      | no: we were moved                   | one that we had read is gone
//                      v                                     v
//                   discover: parse mountinfo, list the files (limit_files.h), read those
//
// What counts    The smallest quota / period over all cgroups from ours up to the highest that we
//                can see, in v1 and in v2. The kernel enforces all of them at once, so an ancestor
//                that is tighter than the leaf is the one we feel. Shares and weights are not
//                limits: they only decide who waits when CPUs are short.
// Cost           Limits change while we run, so read() is made to be called about once a second:
//                one open, read and close for each file, no parsing of mountinfo, and no
//                allocation while nothing moves. The paths are kept rather than open descriptors,
//                since a descriptor of a cgroup that we have left would still be readable, and
//                wrong.
// Bad contents   never throw. What is not a positive quota over a positive period is no limit.
// Blind moments  If the process is out of descriptors or memory for them, the last answer holds.
// Throttling     cpu.stat of a cgroup with a quota counts the periods in which the kernel stopped
//                it. read() adds up how the counts grow from one call to the next. Cgroups above
//                each other may stop us in the same period. So each read() adds the figures of one
//                cgroup: the one that stopped us for longest since the read() before.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cpus/limit_files.h"

namespace magpie::cpus {

// CPUs' worth of time that the content of a v2 `cpu.max` grants; none for "max" and for nonsense.
[[nodiscard]] std::optional<double> parse_cpu_max(std::string_view text);

// The same for the contents of v1 `cpu.cfs_quota_us` and `cpu.cfs_period_us`.
[[nodiscard]] std::optional<double> parse_cfs(std::string_view quota, std::string_view period);

// How often a quota stopped the threads of a cgroup. The numbers only grow.
struct Throttling {
  std::uint64_t periods = 0;            // periods in which the cgroup wanted to run
  std::uint64_t throttled_periods = 0;  // periods in which it had used its quota up
  std::uint64_t throttled_ns = 0;       // time for which it was stopped, summed over its CPUs

  bool operator==(const Throttling&) const = default;
};

// What the content of a cpu.stat says, of v1 or v2; none if it does not count periods.
[[nodiscard]] std::optional<Throttling> parse_cpu_stat(std::string_view text);

// Knows the quota files of this process and reads them again on demand. Not thread-safe: one caller
// at a time. It reads files, so it may block the calling thread for as long as /proc and the cgroup
// file system take (they have no disk behind them).
class QuotaReader {
 public:
  // `root` is put before every path, /proc/self/... and mount points; empty except in tests.
  explicit QuotaReader(std::string root = "");

  // Reads the quotas of another process. Its files are looked up as that process sees them.
  [[nodiscard]] static QuotaReader of_process(int pid);

  // The tightest quota in force now, greater than 0; or none if no cgroup limits us.
  [[nodiscard]] std::optional<double> read();

  // How often quotas stopped this process between the first read(), which the constructor makes,
  // and the last.
  [[nodiscard]] const Throttling& throttling() const { return throttling_; }

  // How often the files were searched for, the first time included. For tests and metrics.
  [[nodiscard]] int discoveries() const { return discoveries_; }

 private:
  QuotaReader(std::string root, std::string process_directory);

  struct Source {
    LimitFile file;
    std::string stat_path;
    bool was_read = false;  // by an earlier pass, so it has vanished if it is missing now
    std::optional<Throttling> counted = {};  // by the last pass that could read stat_path
  };

  // What one pass over the sources showed.
  enum class Pass {
    complete,  // smallest_ is the answer
    vanished,  // a file that was there before is gone: the list may be stale
    blind,     // could not look: nothing is known
  };

  [[nodiscard]] bool discover();
  [[nodiscard]] Pass read_sources();
  [[nodiscard]] Pass read_source(Source& source);
  void count_throttling(Source& source);

  // Fixed after construction.
  std::string root_;
  std::string cgroup_path_;
  std::string mountinfo_path_;

  // What discover() found, and the membership that it was found for.
  std::vector<Source> sources_;
  std::string membership_;
  bool discovered_ = false;
  int discoveries_ = 0;

  std::optional<double> smallest_;  // of the pass under way
  std::optional<double> answer_;    // of the last complete pass
  Throttling worst_;                // growth at the cgroup that stopped us most, this pass
  Throttling throttling_;           // all passes

  // Kept between calls for their capacity only.
  std::string text_;
  std::string period_text_;
};

}  // namespace magpie::cpus
