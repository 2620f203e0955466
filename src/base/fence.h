// fence.h: a store-load fence that costs the frequent side nothing.
//
// Two threads that each raise a flag and then read the other's need a full fence on both sides, or both
// may miss. When one side is on the hot path (it published work) and the other is about to sleep, the
// sleeper can pay for both: membarrier(PRIVATE_EXPEDITED) makes every running thread of the process execute
// a full fence, and threads that are not running pass one when they are scheduled. So:
//
//     hot side:    publish;  light_fence();  read the other's flag
//     rare side:   raise flag;  heavy_fence();  look at what was published
//
// is as good as a seq_cst fence in both places. Where the kernel has no membarrier (before 4.14, some
// sandboxes and emulators) light_fence() is a real fence: slower, same meaning.
// Which of the two it is, is fixed before the program's first constructor runs: were it to change later, a thread could
// stand between its publishing and its reading, having passed no fence, while the other side already left out the heavy one.
#pragma once

#include <atomic>

#ifdef MAGPIE_MODEL
#include "model_atomic.h"
#endif

namespace magpie::base {

#ifdef MAGPIE_MODEL
inline void light_fence() { model::seq_cst_fence(); }
inline void heavy_fence() { model::seq_cst_fence(); }
#else

namespace detail {
// Fixed when the program is loaded, but see prepare_fences(). Atomic, as that may write beside threads that read it. Hidden:
// read without a table look-up.
extern std::atomic<bool> light_fence_is_free __attribute__((visibility("hidden")));
}  // namespace detail

// As run() begins: a program that has forbidden itself membarrier since it was loaded, with a sandbox of its own, goes on with
// real fences. (Its other threads must not be in the middle of a channel's operation just then.)
void prepare_fences();

// For tests, while nobody else uses fences: from now on light fences are real ones, as without membarrier.
void forbid_membarrier();

inline void light_fence() {
  if (detail::light_fence_is_free.load(std::memory_order_relaxed)) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

void heavy_fence();
#endif

}  // namespace magpie::base
