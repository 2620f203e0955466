// cpu_slices.h: how long the kernel lets a thread run at a time.
#pragma once

#include <cstdint>

namespace magpie::base {

// For the calling thread; 0: as long as usual. A thread that works for microseconds at a time and is to be on time, also
// when every CPU is busy, asks for short ones: since 6.12 the kernel runs it sooner when it wakes up. Others
// refuse, which does no harm. A thread whose policy has no such slices (FIFO, RR, IDLE, deadline) is left alone.
void ask_for_slices(std::int64_t ns);

}  // namespace magpie::base
