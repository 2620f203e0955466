// fence.h: a store-load fence that costs the frequent side nothing.
//
// Two threads that each raise a flag and then read the other's need a full fence on both sides.
// Otherwise both may miss. Often one side is on the hot path (it published work) and the other is
// about to sleep. Then the sleeper can pay for both: membarrier(PRIVATE_EXPEDITED) makes every
// running thread of the process execute a full fence. Threads that are not running pass a fence
// when they are scheduled. So:
//
//     hot side:    publish;  light_fence();  read the other's flag
//     rare side:   raise flag;  heavy_fence();  look at what was published
//
// is as good as a seq_cst fence in both places. Where the kernel has no membarrier (before 4.14,
// some sandboxes and emulators) light_fence() is a real fence: slower, same meaning.
//
// Protocol  [fences]  which kind light_fence() is: both sides must agree
//   as the program is loaded:  ask the kernel;  store what it granted
//   a thread that fences:      light_fence(), heavy_fence(): read what was granted
//
// Same      The answer is stored before the program's first constructor runs, so before there is a
//           thread that could read it. A later change would be wrong: a thread could be between its
//           publishing and its reading, having passed no fence, while the other side already leaves
//           out the heavy one.
// Orders    [fences] relaxed: the step that made a thread known to another orders it.
// Proof     tests/model/fences_model.cc. The kernel promises that a membarrier is as good as a
//           fence.
#pragma once

#include <atomic>

#include "base/atomic.h"

namespace magpie::base {

namespace detail {
class FencesGranted {
 public:
  void set(bool light_is_free) { light_is_free_.store(light_is_free, relaxed); }
  bool light_is_free() const { return light_is_free_.load(relaxed); }

 private:
  Atomic<bool> light_is_free_{false};  // atomic [fences]
};
}  // namespace detail

#ifdef MAGPIE_MODEL
inline void light_fence() { model::seq_cst_fence(); }
inline void heavy_fence() { model::seq_cst_fence(); }
#else

namespace detail {
// Fixed when the program is loaded, except by prepare_fences(). Hidden: read without a table
// look-up.
extern FencesGranted fences_granted __attribute__((visibility("hidden")));
}  // namespace detail

// run() calls this as it begins. A program may have forbidden itself membarrier since it was
// loaded, with a sandbox of its own: it continues with real fences. (Its other threads must not be
// in the middle of a channel's operation at that moment.)
void prepare_fences();

// For tests, while no other thread uses fences: from now on light fences are real ones, as without
// membarrier.
void forbid_membarrier();

inline void light_fence() {
  if (detail::fences_granted.light_is_free()) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

void heavy_fence();
#endif

}  // namespace magpie::base
