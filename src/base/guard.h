// guard.h: holds a lock of ours until the end of a block. As std::lock_guard, and Clang sees it.
#pragma once

#include "base/annotations.h"

namespace magpie::base {

template <class L>
class MAGPIE_GUARD_TYPE Guard {
 public:
  explicit Guard(L& lock) MAGPIE_ACQUIRES(lock) : lock_(lock) { lock_.lock(); }
  ~Guard() MAGPIE_RELEASES() { lock_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  L& lock_;
};

}  // namespace magpie::base
