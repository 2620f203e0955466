#include "sched/run/inside.h"

#include "sched/current.h"
#include "sched/run/runtime.h"

namespace magpie::sched {
namespace {

// Used only in functions that are not inlined and do not switch. So its address is that of the
// right thread.
thread_local constinit const char* allowed_because = nullptr;

}  // namespace

[[gnu::noinline]] AllowedInside::AllowedInside(const char* why) : before_(allowed_because) {
  allowed_because = why;
}
[[gnu::noinline]] AllowedInside::~AllowedInside() { allowed_because = before_; }

// The thread that called run() keeps its last P after its loop, on its own stack, when all other Ms
// have left.
[[gnu::noinline]] bool is_inside_with_p() {
  M* m = current_m();
  if (m == nullptr || !m->grip.is_inside() || m->p == nullptr) return false;
  if (allowed_because != nullptr) return false;
  return m->current_stack() != nullptr || !runtime->world.ending();
}

}  // namespace magpie::sched
