#include "base/fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"

namespace magpie::base {

std::atomic<bool> detail::light_fence_is_free{false};

namespace {

bool membarrier_is_granted() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

// Before any constructor of a static object that could use a fence, or start a thread that does.
[[gnu::constructor(101)]] void choose_fences() {
  detail::light_fence_is_free.store(membarrier_is_granted(), std::memory_order_relaxed);
}

}  // namespace

void prepare_fences() {
  if (detail::light_fence_is_free.load(std::memory_order_relaxed) && !membarrier_is_granted())
    forbid_membarrier();
}

void forbid_membarrier() { detail::light_fence_is_free.store(false, std::memory_order_relaxed); }

void heavy_fence() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!detail::light_fence_is_free.load(std::memory_order_relaxed)) return;
  MAGPIE_CHECK(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0);
}

}  // namespace magpie::base
