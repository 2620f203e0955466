// wait_storage.h: where a lock keeps the list of its waiters. Not part of the API.
#pragma once

#include <magpie/detail/cxx20.h>

#include <atomic>
#include <cstdint>

namespace magpie::detail {

// Holds a WaitList (src/sched/wait_list.h).
struct WaitStorage {
  void* words[6] = {};
};

// Holds an InTransit (src/sync/in_transit.h).
struct TransitStorage {
  std::atomic<std::uint64_t> amount{0};  // atomic, written under the owner's lock
  std::uint64_t generation = 0;
};

}  // namespace magpie::detail
