// words.h: the words of the runtime, for JSON.
#pragma once

#include <cstdint>

#include "sched/wait_reason.h"

namespace magpie::view {

inline const char* reason_text(std::uint8_t reason) {
  return sched::text(static_cast<sched::WaitReason>(reason));
}

}  // namespace magpie::view
