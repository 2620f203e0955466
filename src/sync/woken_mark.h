// woken_mark.h: one of those who waited has been woken, and has yet to come for what it waited for.
//
// A goroutine that was woken may be dropped before it runs, when run() ends. So the mark is the generation of the one
// that was woken, and means nothing in another.
#pragma once

#include <cstdint>

#include "sched/wait_list.h"

namespace magpie::sync {

// Guarded like the list. A plain number, so that public types can keep one.
class WokenMark {
 public:
  explicit WokenMark(std::uint64_t& storage) : mark_(storage) {}

  bool is_set(const sched::Presence& presence) const {
    return mark_ == kThread || (mark_ != kNobody && mark_ == presence.generation());
  }
  void set(const sched::WaitRecord& woken, const sched::Presence& presence) {
    mark_ = woken.is_thread ? kThread : presence.generation();
  }
  void clear() { mark_ = kNobody; }

 private:
  static constexpr std::uint64_t kNobody = 0, kThread = ~std::uint64_t{0};

  std::uint64_t& mark_;
};

}  // namespace magpie::sync
