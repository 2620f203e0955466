#include "base/fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"

namespace magpie::base {

constinit detail::FencesGranted detail::fences_granted;

namespace {
bool membarrier_forbidden = false;
}

void prepare_fences() {
  bool granted = !membarrier_forbidden &&
                 syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  detail::fences_granted.set(granted);
}

void forbid_membarrier() { membarrier_forbidden = true; }

void heavy_fence() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!detail::fences_granted.light_is_free()) return;
  MAGPIE_CHECK(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0);
}

}  // namespace magpie::base
