// futex.h: the kernel calls under Lock and Event. A model has its own (tests/model/model_futex.h).
#pragma once

#include <cstdint>

#include "base/atomic.h"

#ifdef MAGPIE_MODEL
#include "model_futex.h"
#endif

namespace magpie::base {

// The calling thread adds one to `place` as it begins to sleep in one of these calls, and one as it
// ends. So others can tell such a sleep from a wait for another lock. Null: it does not count.
void note_own_sleeps_in(std::atomic<std::uint32_t>* place);

// Sleeps while *word == expected. May return early for no reason.
void futex_wait(const Atomic<std::uint32_t>& word, std::uint32_t expected);

// The same, at the latest until `deadline_ns` of the monotonic clock.
void futex_wait_until(const Atomic<std::uint32_t>& word, std::uint32_t expected,
                      std::int64_t deadline_ns);

// Wakes up to `count` sleepers. The word may already be freed memory: a stray wake-up harms nobody.
void futex_wake(const Atomic<std::uint32_t>& word, int count);

}  // namespace magpie::base
