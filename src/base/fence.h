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
//
// Protocol  [fences]  which of the two it is: both sides must think the same
//   as the program is loaded:  ask the kernel;  say what it granted
//   whoever uses a fence:      light_fence(), heavy_fence(): read what was granted
//
// Same      The answer is stored before the program's first constructor runs, so before there is a thread that could read it.
//           Were it to change later, a thread could stand between its publishing and its reading, having passed no fence, while
//           the other side already left out the heavy one.
// Orders    [fences] relaxed: whatever made a thread known to another orders it.
// Proof     tests/model/fences_model.cc. That a membarrier is as good as a fence is the kernel's promise.
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
// Fixed when the program is loaded, but see prepare_fences(). Hidden: read without a table look-up.
extern FencesGranted fences_granted __attribute__((visibility("hidden")));
}  // namespace detail

// As run() begins: a program that has forbidden itself membarrier since it was loaded, with a sandbox of its own, goes on with
// real fences. (Its other threads must not be in the middle of a channel's operation just then.)
void prepare_fences();

// For tests, while nobody else uses fences: from now on light fences are real ones, as without membarrier.
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
