// random.h: a small fast generator for victim choice. Not for secrets.
#pragma once

#include <cstdint>

namespace magpie::base {

// xorshift64* (Marsaglia 2003, multiplier by Vigna 2014); period 2^64 - 1.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u | 1) {}

  std::uint32_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<std::uint32_t>((state_ * 0x2545F4914F6CDD1Du) >> 32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace magpie::base
