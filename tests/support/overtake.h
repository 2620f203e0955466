// overtake.h: goroutines that get into each other's way.
#pragma once

#include <magpie/runtime.h>

namespace magpie::support {

// So many goroutines that at more than one proc some of them change threads.
inline constexpr int kMany = 300;

// Lets others run often enough that goroutines overtake each other and change threads.
inline void be_overtaken() {
  for (int i = 0; i < 5; ++i) yield();
}

}  // namespace magpie::support
