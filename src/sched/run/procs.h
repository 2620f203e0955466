// procs.h: how many Ps there are, and changing it.
//
// The number comes from Options::procs, else MAGPIE_PROCS, else from the CPUs and quotas of this
// process. In the last case it follows them until the program calls set_procs(): about once a
// second sysmon asks the maker of threads to look them up again. Changing the number stops the
// world. The queues of removed Ps go to the front of the global queue, their caches go back to the
// pools, their timers go to the first P. Their counters stay.
//
// The same look counts how often a quota stopped the process, for stats() and the trace, also when
// the number of Ps is the user's: such a program feels the quota most. An idle program is not
// looked at, as sysmon sleeps.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/atomic.h"
#include "cpus/quota.h"

namespace magpie::sched {

struct M;

class ProcsSource {
 public:
  // Throws std::invalid_argument for an Options::procs or MAGPIE_PROCS that is no positive number.
  explicit ProcsSource(int wanted);

  int initial() const { return initial_; }
  int cpus_at_start() const { return cpus_at_start_; }
  // As of the last look.
  int cpus() const { return cpus_.load(base::relaxed); }
  double quota() const { return quota_.load(base::relaxed); }  // 0: none
  cpus::Throttling throttling() const;

  // From now on the number is the user's.
  void fix() { follows_.store(false, base::relaxed); }

 private:
  friend void refresh_procs();
  friend bool procs_refresh_is_due();

  // Looks affinity, quotas and throttling up, and returns how many Ps they ask for.
  int look();
  void publish(const cpus::Throttling& now);

  int cpus_at_start_;
  int initial_;
  base::Atomic<bool> follows_;                  // atomic, a hint: whether quotas still decide
  base::Atomic<std::int64_t> next_look_ns_{0};  // atomic, a hint: a time
  // Written by look(), read by stats(), schedtrace and the choice of a free CPU.
  base::Atomic<int> cpus_;         // atomic, a hint: nothing is ordered by it
  base::Atomic<double> quota_{0};  // atomic, a hint: nothing is ordered by it
  base::Counter periods_, throttled_periods_, throttled_ns_;
  // guarded by the right to stop the world
  std::unique_ptr<cpus::QuotaReader> quotas_;
  bool has_moved_ = false;  // the CPUs are others than those that the Ps were given homes on
};

// For tests, while no runtime runs: the directory under which /proc and the cgroup mounts are
// found, and the time between two looks.
inline constexpr std::int64_t kLookEveryNs = 1'000'000'000;
void set_file_root(std::string root, std::int64_t look_every_ns = kLookEveryNs);
const std::string& file_root();

// Makes room for n Ps. Throws std::bad_alloc, and std::invalid_argument for more than memory
// allows.
void reserve_procs(int n);

// Is it time to look the quotas up again?
bool procs_refresh_is_due();

// Looks the quotas up. Not inside the runtime: it reads files, allocates, and waits for the world
// to stop.
void refresh_procs();

}  // namespace magpie::sched
