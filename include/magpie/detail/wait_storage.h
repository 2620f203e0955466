// wait_storage.h: the room in which a lock keeps those who wait for it. Not part of the API.
#pragma once

#include <magpie/detail/cxx20.h>

#include <atomic>
#include <cstdint>

namespace magpie::detail {

// What happens in it: src/sched/wait_list.h.
struct WaitStorage {
  void* words[6] = {};
};

// What happens in it: src/sync/in_transit.h.
struct TransitStorage {
  std::atomic<std::uint64_t> amount{0};  // atomic, written under the owner's lock
  std::uint64_t generation = 0;
};

}  // namespace magpie::detail
