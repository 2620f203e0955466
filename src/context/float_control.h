// float_control.h: rounding mode and exception masks of the calling thread, as the switch saves them.
//
// A goroutine starts with the defaults of the ABI, keeps what it sets across blocking and migration, and
// leaves nothing behind: the loop resets a thread whose finished goroutine changed them.
#pragma once

#include <cstdint>

namespace magpie::context {

#if defined(__x86_64__)

// MXCSR: all exceptions masked, round to nearest. x87: the same, 64-bit mantissa.
inline constexpr std::uint32_t kDefaultMxcsr = 0x1F80;
inline constexpr std::uint16_t kDefaultX87Control = 0x037F;
inline constexpr std::uint32_t kMxcsrStatusFlags = 0x3F;  // sticky results, not control

inline std::uint64_t default_float_control() {
  return kDefaultMxcsr | std::uint64_t{kDefaultX87Control} << 32;
}

inline void reset_float_control() {
  std::uint32_t mxcsr;
  std::uint16_t x87;
  asm volatile("stmxcsr %0" : "=m"(mxcsr));
  asm volatile("fnstcw %0" : "=m"(x87));
  if (__builtin_expect((mxcsr & ~kMxcsrStatusFlags) != kDefaultMxcsr, 0)) {
    asm volatile("ldmxcsr %0" : : "m"(kDefaultMxcsr));
  }
  if (__builtin_expect(x87 != kDefaultX87Control, 0)) {
    asm volatile("fldcw %0" : : "m"(kDefaultX87Control));
  }
}

// The control words at its construction.
class FloatControl {
 public:
  FloatControl() {
    asm volatile("stmxcsr %0" : "=m"(mxcsr_));
    asm volatile("fnstcw %0" : "=m"(x87_));
  }
  void restore() const {
    asm volatile("ldmxcsr %0" : : "m"(mxcsr_));
    asm volatile("fldcw %0" : : "m"(x87_));
  }

 private:
  std::uint32_t mxcsr_;
  std::uint16_t x87_;
};

#elif defined(__aarch64__)

class FloatControl {
 public:
  FloatControl() { asm volatile("mrs %0, fpcr" : "=r"(control_)); }
  void restore() const { asm volatile("msr fpcr, %0" : : "r"(control_)); }

 private:
  std::uint64_t control_;
};

inline std::uint64_t default_float_control() { return 0; }

inline void reset_float_control() {
  std::uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  if (__builtin_expect(control != 0, 0)) asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{0}));
}

#endif

}  // namespace magpie::context
