// clock.h: the CPU's counter of ticks, which is read in a few nanoseconds.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "trace/meta.h"

namespace magpie::trace {

inline std::uint64_t ticks_now() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
}

// Both clocks at one instant: of several tries the one that took least.
inline Instant instant_now() {
  Instant best;
  std::uint64_t least = ~std::uint64_t{0};
  for (int i = 0; i < 8; ++i) {
    std::uint64_t before = ticks_now();
    std::int64_t ns = base::now_ns();
    std::uint64_t after = ticks_now();
    if (after - before >= least) continue;
    least = after - before;
    best = {before + least / 2, ns};
  }
  return best;
}

}  // namespace magpie::trace
