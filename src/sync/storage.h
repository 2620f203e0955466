// storage.h: the insides of public types, as what they are.
//
// Public headers show atomics and bare words, so that they include nothing of ours; here these
// become a Lock and a WaitList. All bits zero is the initial state of both.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include <magpie/detail/wait_storage.h>

#include "base/lock.h"
#include "sched/wait_list.h"

namespace magpie::sync {

static_assert(sizeof(base::UncheckedLock) == sizeof(std::atomic<std::uint32_t>));
static_assert(sizeof(sched::WaitList) == sizeof(detail::WaitStorage));
static_assert(alignof(sched::WaitList) == alignof(detail::WaitStorage));
static_assert(std::is_trivially_destructible_v<sched::WaitList>);

inline base::UncheckedLock& as_lock(std::atomic<std::uint32_t>& word) {
  return reinterpret_cast<base::UncheckedLock&>(word);
}

inline sched::WaitList& as_list(detail::WaitStorage& storage) {
  return reinterpret_cast<sched::WaitList&>(storage);
}

}  // namespace magpie::sync
