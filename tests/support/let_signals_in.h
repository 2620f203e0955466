// let_signals_in.h: for loops that the runtime has to stop by a signal.
#pragma once

#include <ctime>

#include "base/sanitizer.h"

namespace magpie::support {

// ThreadSanitizer delivers a signal at the next call that it intercepts: a loop without any call is never stopped. This is one
// that does not sleep; elsewhere it is nothing.
inline void let_signals_in() {
#if defined(MAGPIE_TSAN)
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
#endif
}

}  // namespace magpie::support
