// cpu.h: hints to the processor.
#pragma once

namespace magpie::base {

// Tells the core that this is a spin loop, so that it saves power and lets a sibling thread run.
inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile(
      "isb" ::
          : "memory");  // "yield" is a no-op on most cores; isb waits about as long as pause
#endif
}

}  // namespace magpie::base
