// overflow.h: a function that uses up any stack.
#pragma once

#include <magpie/magpie.h>

// Writes to its frame, so that no page is skipped; not a tail call, so that frames add up.
[[gnu::noinline]] inline int recurse_for_ever(int depth) {
  volatile char ballast[512];
  ballast[0] = static_cast<char>(depth);
  const int below = depth >= 0 ? recurse_for_ever((depth + 1) & 0xFFFF) : 0;
  return below + ballast[0];
}
