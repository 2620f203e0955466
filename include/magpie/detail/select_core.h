// select_core.h: select without the element types. Not part of the API.
#pragma once

#include <magpie/detail/cxx20.h>

#include <cstddef>
#include <cstdint>

#include <magpie/detail/api.h>
#include <magpie/detail/chan_core.h>
#include <magpie/detail/deadline.h>

namespace magpie::detail {

enum class Direction : unsigned char { receive, send };

// One case that names a channel. It must not move while select waits.
struct SelectCase {
  ChanCore* channel = nullptr;  // null: never ready
  void* slot = nullptr;         // as for send and receive
  Direction direction = Direction::receive;
  ChanResult result = ChanResult::refused;  // of the chosen case: done or closed

  // The record that waits at the channel; see src/chan/channel.h.
  static constexpr std::size_t kRecordBytes = 88;
  alignas(8) std::byte record[kRecordBytes];
};

inline constexpr std::size_t kMostCases = 65'536;

struct Select {
  SelectCase* cases;
  SelectCase** in_lock_order;  // room for `count` pointers
  std::size_t count;
  std::int64_t timeout_ns = kNoDeadline;  // wait no longer; 0: not at all
  enum class IfNoneIsReady : unsigned char { wait, return_at_once } if_none_is_ready;
};

enum class Chosen : unsigned char { a_case, time_is_up, none_is_ready };
struct Choice {
  Chosen chosen;
  std::size_t index = 0;  // of the case
};

// Waits until one case can go on, and does it.
MAGPIE_API Choice select(const Select& select);

}  // namespace magpie::detail
