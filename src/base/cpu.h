// cpu.h: hints to the processor.
#pragma once

namespace magpie::base {

// Tells the core that this is a spin loop, so that it saves power and lets a sibling thread run.
inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::
                   // "yield" is a no-op on most cores; isb waits about as long as pause
               : "memory");
#endif
}

// Fetches a cache line that is about to be written, and takes it from the core that has it. That is
// one transfer instead of two: without this, the core would stall for the second, which gives it
// the right to write. __builtin_prefetch() does only half of it unless compiled for newer
// processors.
inline void prefetch_to_write(const void* line) {
#if defined(__x86_64__)
  // Processors that do not know the instruction (Intel's before 2014) treat it as a no-op.
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace magpie::base
