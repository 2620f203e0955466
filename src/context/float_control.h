// float_control.h: rounding mode and exception masks of the calling thread, as the switch saves
// them.
//
// A goroutine starts with the defaults of the ABI, and keeps what it sets across blocking and
// migration. It leaves nothing behind: the loop resets a thread whose finished goroutine changed
// them.
#pragma once

#include <cstdint>

namespace magpie::context {

#if defined(__x86_64__)

// MXCSR: all exceptions masked, round to nearest. x87: the same, 64-bit mantissa.
inline constexpr std::uint32_t kDefaultMxcsr = 0x1F80;
inline constexpr std::uint16_t kDefaultX87Control = 0x037F;
inline constexpr std::uint32_t kMxcsrStatusFlags = 0x3F;  // sticky results, not control

// As the switch keeps them: the x87 word, then MXCSR.
inline std::uint64_t default_float_control() {
  return kDefaultX87Control | std::uint64_t{kDefaultMxcsr} << 32;
}

// The control words at its construction. Reads the x87 word only when MXCSR is not the default, as
// the switch does.
class FloatControl {
 public:
  FloatControl() {
    asm volatile("stmxcsr %0" : "=m"(mxcsr_));
    if (!is_default()) [[unlikely]] {
      asm volatile("fnstcw %0" : "=m"(x87_));
    }
  }
  bool is_default() const { return (mxcsr_ & ~kMxcsrStatusFlags) == kDefaultMxcsr; }
  void restore() const {
    asm volatile("ldmxcsr %0" : : "m"(mxcsr_));
    asm volatile("fldcw %0" : : "m"(x87_));
  }

 private:
  std::uint32_t mxcsr_;
  std::uint16_t x87_ = kDefaultX87Control;
};

inline void set_default_float_control() {
  asm volatile("ldmxcsr %0" : : "m"(kDefaultMxcsr));
  asm volatile("fldcw %0" : : "m"(kDefaultX87Control));
}

#elif defined(__aarch64__)

class FloatControl {
 public:
  FloatControl() { asm volatile("mrs %0, fpcr" : "=r"(control_)); }
  bool is_default() const { return control_ == 0; }
  void restore() const { asm volatile("msr fpcr, %0" : : "r"(control_)); }

 private:
  std::uint64_t control_;
};

inline std::uint64_t default_float_control() { return 0; }
inline void set_default_float_control() { asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{0})); }

#endif

// Undoes what the goroutine that just ended did to the thread.
inline void reset_float_control() {
  if (!FloatControl().is_default()) [[unlikely]]
    set_default_float_control();
}

}  // namespace magpie::context
