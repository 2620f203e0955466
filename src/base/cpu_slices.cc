#include "base/cpu_slices.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace magpie::base {

void ask_for_slices(std::int64_t ns) {
  struct {
    std::uint32_t size;
    std::uint32_t policy;  // 0: as every thread
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime_ns, deadline_ns, period_ns;
  } wish = {};
  wish.size = sizeof wish;
  wish.nice = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
  wish.runtime_ns = static_cast<std::uint64_t>(ns);
  (void)syscall(SYS_sched_setattr, 0, &wish, 0U);
}

}  // namespace magpie::base
