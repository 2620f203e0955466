// procs.h: how many Ps there are, and changing it.
//
// The number comes from Options::procs, else MAGPIE_PROCS, else from the CPUs and quotas of this
// process. In the last case it follows them until the program calls set_procs(): about once a
// second sysmon asks the maker of threads to look them up again. Changing the number stops the
// world. The queues of removed Ps go to the front of the global queue, their caches go back to the
// pools, their timers go to the first P. Their counters stay.
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
  int cpus() const { return cpus_; }

  // From now on the number is the user's.
  void fix() { follows_.store(false, base::relaxed); }

 private:
  friend void refresh_procs();
  friend bool procs_refresh_is_due();

  int cpus_;
  int initial_;
  base::Atomic<bool> follows_;                  // atomic, a hint: whether quotas still decide
  base::Atomic<std::int64_t> next_look_ns_{0};  // atomic, a hint: a time
  base::Atomic<bool> looking_{false};           // atomic, a lock: one thread looks at a time
  std::unique_ptr<cpus::QuotaReader> quotas_;   // guarded by looking_
};

// For tests: the directory under which /proc and the cgroup mounts are found.
void set_file_root(std::string root);

// Makes room for n Ps. Throws std::bad_alloc, and std::invalid_argument for more than memory
// allows.
void reserve_procs(int n);

// Is it time to look the quotas up again, and do they still decide?
bool procs_refresh_is_due();

// Looks the quotas up. Not inside the runtime: it reads files, allocates, and waits for the world
// to stop.
void refresh_procs();

}  // namespace magpie::sched
