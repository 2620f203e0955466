// cpu_slices.h: how long the kernel lets a thread run at a time.
#pragma once

#include <cstdint>

namespace magpie::base {

// For the calling thread; 0: as long as usual. A thread should ask for short slices if it works for
// microseconds at a time and must be on time, also when every CPU is busy. Since 6.12 the kernel
// runs such a thread sooner when it wakes up. Other kernels refuse, which does no harm. A thread
// whose policy has no slices (FIFO, RR, IDLE, deadline) is left alone.
void ask_for_slices(std::int64_t ns);

}  // namespace magpie::base
