// ending.h: what every goroutine does after its body, in the loop or in place of its joiner.
#pragma once

#include "sched/core/m.h"
#include "sched/current.h"
#include "sched/entry.h"
#include "sched/threads/fork.h"

namespace magpie::sched {

// Destroys the goroutine-local values, as the goroutine: a destructor may block, or use other
// values.
inline void destroy_locals(GExtra& extra) {
  while (!extra.locals.empty()) {
    GExtra::LocalValue local = extra.locals.back();
    extra.locals.pop_back();
    local.destroy(local.value);
  }
}

// Call this before the goroutine needs a P to continue. If the runtime ends and the goroutine never
// gets one, what its body left must still be destroyed.
inline void note_body_is_over(G* g) {
  if (g->joinable) g->state.store(GState::ended, base::relaxed);
}

// Call this after the body, which may have blocked and come back on another M. Returns that M.
inline M* come_back() {
  M* m = current_m();
  if (m == nullptr) [[unlikely]]
    returned_in_forked_child();
  return enter_runtime(m);
}

}  // namespace magpie::sched
