#include "sched/trim_stack.h"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "sched/core/m.h"
#include "sched/current.h"

namespace magpie::sched {

// Not inlined, so that nothing of the caller lies below the address at which this frame begins. The
// system call's own frame and the red zone are above the page at which the range ends.
[[gnu::noinline]] void trim_stack() noexcept {
  constexpr std::uintptr_t kOwnUse = 512;
  M* m = current_m();
  if (m == nullptr || m->current == nullptr) return;
  const stack::Stack* stack = m->current_stack();  // the goroutine's, whatever thread it is on
  auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  auto low = reinterpret_cast<std::uintptr_t>(stack->low);
  std::uintptr_t end = (here - kOwnUse) / stack::page_size() * stack::page_size();
  if (low < end && end - low < stack->usable()) madvise(stack->low, end - low, MADV_DONTNEED);
}

}  // namespace magpie::sched
