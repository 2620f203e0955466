// format.h: how a trace file is laid out: numbers, events and blocks. See docs/trace-format.md.
//
//   file    16 bytes "MAGPIE TRACE" 0 0 version, then blocks
//   block   BlockHeader, then its payload
//   number  1 to 9 bytes. The number of zero bits below the lowest set bit of the first byte says
//           how many bytes follow. So a number is written with one store, without a loop.
//   event   kind byte, number: ticks since the last event of the block, numbers: the arguments
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "trace/blocks.h"
#include "trace/event.h"

namespace magpie::trace {

static_assert(std::endian::native == std::endian::little, "the file format is little endian");

inline constexpr char kFileMagic[14] = {'M', 'A', 'G', 'P', 'I', 'E', ' ',
                                        'T', 'R', 'A', 'C', 'E', 0,   0};
inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::size_t kFileHeaderBytes = 16;

inline constexpr std::uint32_t kBlockMagic = 0x4b4c424d;  // "MBLK"

// The numbers are part of the file format. A reader skips blocks of types that it does not know.
enum class BlockType : std::uint8_t {
  begin = 1,    // of a generation: clocks, the program, the kinds of events
  events = 2,   // of one stream
  states = 3,   // goroutines that lived at some time of the generation, as `state` events
  modules = 4,  // which files are mapped where
  end = 5       // of a generation: totals
};

// A flag of a begin block: run() has begun. No goroutine lives, and numbers begin again.
inline constexpr std::uint8_t kNewRun = 1;

struct BlockHeader {
  std::uint32_t magic;
  std::uint8_t type;
  std::uint8_t flags;
  std::uint16_t stream;
  std::uint32_t generation;
  std::uint32_t payload_bytes;
  std::uint64_t first_ticks;  // the time that the first event's distance counts from
};
static_assert(sizeof(BlockHeader) == 24);

inline void write_file_header(char (&out)[kFileHeaderBytes]) {
  std::memcpy(out, kFileMagic, sizeof kFileMagic);
  std::memcpy(out + sizeof kFileMagic, &kVersion, sizeof kVersion);
}

// ---- writing. The caller has made sure that there is room.

inline constexpr std::size_t kNumberBytes = 9;       // at most; put_number touches no more
inline constexpr std::size_t kLongestString = 1024;  // a longer one is cut off

inline std::uint8_t* put_number(std::uint8_t* at, std::uint64_t value) {
  if (value < (std::uint64_t{1} << 56)) [[likely]] {
    auto bits = static_cast<unsigned>(std::bit_width(value | 1));
    unsigned bytes = (bits * 37 + 222) >> 8;  // bits / 7, rounded up, for 1 to 56
    std::uint64_t word = (value << bytes) | (std::uint64_t{1} << (bytes - 1));
    std::memcpy(at, &word, sizeof word);
    return at + bytes;
  }
  *at = 0;
  std::memcpy(at + 1, &value, sizeof value);
  return at + kNumberBytes;
}

inline std::uint64_t zigzag(std::uint64_t difference) {
  return (difference << 1) ^ (std::uint64_t{0} - (difference >> 63));
}
inline std::uint64_t unzigzag(std::uint64_t coded) {
  return (coded >> 1) ^ (std::uint64_t{0} - (coded & 1));
}

inline std::uint8_t* put_string(std::uint8_t* at, std::string_view text) {
  if (text.size() > kLongestString) text = text.substr(0, kLongestString);
  at = put_number(at, text.size());
  if (!text.empty()) std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

// ---- reading. Survives any bytes: after the first number that does not fit, all are 0.

class Input {
 public:
  Input(const std::uint8_t* from, std::size_t bytes) : at_(from), end_(from + bytes) {}

  bool is_at_end() const { return at_ == end_; }
  bool is_broken() const { return broken_; }
  const std::uint8_t* at() const { return at_; }

  std::uint8_t byte() {
    if (at_ == end_) return fail();
    return *at_++;
  }

  std::uint64_t number() {
    if (at_ == end_) return fail();
    auto left = static_cast<std::size_t>(end_ - at_);
    if (*at_ == 0) {
      if (left < kNumberBytes) return fail();
      std::uint64_t value;
      std::memcpy(&value, at_ + 1, sizeof value);
      at_ += kNumberBytes;
      return value;
    }
    unsigned bytes = static_cast<unsigned>(std::countr_zero(*at_)) + 1;
    if (left < bytes) return fail();
    std::uint64_t word = 0;
    if (left >= sizeof word) {
      std::memcpy(&word, at_, sizeof word);
      word &= ~std::uint64_t{0} >> (64 - 8 * bytes);
    } else {
      std::memcpy(&word, at_, bytes);
    }
    at_ += bytes;
    return word >> bytes;
  }

  std::string_view string() {
    std::uint64_t bytes = number();
    if (bytes > static_cast<std::size_t>(end_ - at_)) {
      fail();
      return {};
    }
    std::string_view text(reinterpret_cast<const char*>(at_), bytes);
    at_ += bytes;
    return text;
  }

 private:
  std::uint8_t fail() {
    broken_ = true;
    at_ = end_;
    return 0;
  }

  const std::uint8_t* at_;
  const std::uint8_t* end_;
  bool broken_ = false;
};

}  // namespace magpie::trace
