// wait_storage.h: the room in which a lock keeps those who wait for it. Not part of the API.
#pragma once

namespace magpie::detail {

// What happens in it: src/sched/wait_list.h.
struct WaitStorage {
  void* words[6] = {};
};

}  // namespace magpie::detail
