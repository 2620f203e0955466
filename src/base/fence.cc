#include "base/fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"

namespace magpie::base {

constinit detail::FencesGranted detail::fences_granted;

namespace {

bool membarrier_is_granted() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

// Runs before any constructor of a static object that could use a fence, or start a thread that
// does.
[[gnu::constructor(101)]] void choose_fences() {
  detail::fences_granted.set(membarrier_is_granted());
}

}  // namespace

void prepare_fences() {
  if (detail::fences_granted.light_is_free() && !membarrier_is_granted()) forbid_membarrier();
}

void forbid_membarrier() { detail::fences_granted.set(false); }

void heavy_fence() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!detail::fences_granted.light_is_free()) return;
  MAGPIE_CHECK(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0);
}

}  // namespace magpie::base
