// wait_reason.h: why a goroutine waits, in the words that dumps and traces use.
#pragma once

#include <cstdint>

namespace magpie::sched {

enum class WaitReason : std::uint8_t {
  none,
  join,        // JoinHandle::join
  wait_group,  // WaitGroup::wait
};

inline const char* text(WaitReason reason) {
  switch (reason) {
    case WaitReason::none:
      return "";
    case WaitReason::join:
      return "join";
    case WaitReason::wait_group:
      return "WaitGroup wait";
  }
  return "unknown";
}

}  // namespace magpie::sched
