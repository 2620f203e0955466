// may_leak.h: leak checkers do not count what is allocated meanwhile.
//
// For what a goroutine has on its stack when run() drops it: nobody gives that back. Nothing inside
// may switch goroutines.
#pragma once

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace magpie::support {

class MayLeak {
 public:
#ifdef __SANITIZE_ADDRESS__
  MayLeak() { __lsan_disable(); }
  ~MayLeak() { __lsan_enable(); }
#else
  MayLeak() {}
  ~MayLeak() {}
#endif
  MayLeak(const MayLeak&) = delete;
  MayLeak& operator=(const MayLeak&) = delete;
};

}  // namespace magpie::support
