#include "base/cpu_slices.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace magpie::base {

void ask_for_slices(std::int64_t ns) {
  struct {
    std::uint32_t size;
    std::uint32_t policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime_ns, deadline_ns, period_ns;
  } attributes = {};
  // Policy, nice value and flags stay as they are: the program may have chosen them.
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0U) != 0) return;
  bool has_slices = attributes.policy == SCHED_OTHER || attributes.policy == SCHED_BATCH;
  if (!has_slices) return;
  attributes.size = sizeof attributes;
  attributes.runtime_ns = static_cast<std::uint64_t>(ns);
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0U);
}

}  // namespace magpie::base
