// buffer.h: writes events. While nothing is traced, a hook costs is_on(): two instructions.
//
// Each P has a Buffer of its own, which only the holder of the P writes, inside the runtime. All
// other threads share one, under a lock. A Buffer writes to one block at a time; when the block is
// full it takes another from the recorder. If there is none, the event is counted as lost, and the
// next block begins with a `lost` event.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/atomic.h"
#include "trace/blocks.h"
#include "trace/clock.h"
#include "trace/event.h"
#include "trace/format.h"

namespace magpie::trace {

namespace detail {
// atomic, a hint: written while the world is stopped, or nothing runs. A thread without a P looks
// again under the lock of the outside stream.
extern base::Atomic<bool> magpie_trace_is_on __attribute__((visibility("hidden")));
}  // namespace detail

// Whether events are recorded. Assembly, because compilers load an atomic before they test it:
// that would be three instructions.
[[nodiscard, gnu::always_inline]] inline bool is_on() {
#if defined(__x86_64__)
  asm goto("cmpb $0, %0\n\tjne %l[on]"
           :
           : "m"(detail::magpie_trace_is_on)
           : "cc"
           : on);
  return false;
on:
  return true;
#else
  return detail::magpie_trace_is_on.load(base::relaxed);
#endif
}

// A Block and the bytes behind it.
inline constexpr std::size_t kBlockBytes = 32768;
inline constexpr std::size_t kLongestEvent = 1 + kNumberBytes * (1 + kMostArgs);
inline constexpr std::size_t kMostStreams = kOutsideStream;

inline std::uint8_t* data_of(Block* block) { return reinterpret_cast<std::uint8_t*>(block + 1); }
inline std::uint8_t* end_of(Block* block) {
  return reinterpret_cast<std::uint8_t*>(block) + kBlockBytes;
}

class alignas(base::kCacheLine) Buffer {
 public:
  struct OfOutside {};
  constexpr Buffer() = default;
  constexpr explicit Buffer(OfOutside) : stream_(kOutsideStream), is_outside_(true) {}

  // Writes an event whose arguments are numbers, goroutines, or program counters by coded_pc().
  template <std::same_as<std::uint64_t>... Number>
  void put(std::uint64_t now, Kind kind, Number... numbers) {
    if (std::uint8_t* at = begin(now, kind, kLongestEvent)) {
      ((at = put_number(at, numbers)), ...);
      end(at);
    }
  }

  // The same for an event whose last argument is an object, stored as the distance from the last.
  template <std::same_as<std::uint64_t>... Number>
  void put_object(std::uint64_t now, Kind kind, std::uint64_t object, Number... numbers) {
    if (std::uint8_t* at = begin(now, kind, kLongestEvent)) {
      ((at = put_number(at, numbers)), ...);
      at = put_number(at, zigzag(object - last_object_));
      last_object_ = object;
      end(at);
    }
  }

  // The same for an event that ends with strings.
  template <std::same_as<std::uint64_t>... Number>
  void put_text(std::uint64_t now, Kind kind, std::string_view first, std::string_view second,
                Number... numbers) {
    if (std::uint8_t* at = begin(now, kind, kLongestEvent + 2 * kLongestString)) {
      ((at = put_number(at, numbers)), ...);
      at = put_string(at, first);
      if (kind == Kind::log) at = put_string(at, second);
      end(at);
    }
  }

  // The goroutine that runs on the P from now on, so that each block can say it. 0: none.
  void set_current(std::uint64_t goroutine) { current_ = goroutine; }

  // ---- the recorder

  // The next event begins a new block.
  void ask_for_new_block() { limit_.store(nullptr, base::relaxed); }
  // While nobody writes. Returns the block that was written last, or null.
  Block* reset();
  std::uint64_t lost() const { return lost_; }
  void forget_lost() {
    lost_ = 0;
    lost_told_ = 0;
  }

 private:
  // Where the event's arguments go, or null.
  [[gnu::always_inline]] std::uint8_t* begin(std::uint64_t now, Kind kind, std::size_t most) {
    std::uint8_t* at = at_;
    auto limit = reinterpret_cast<std::uintptr_t>(limit_.load(base::relaxed));
    if (reinterpret_cast<std::uintptr_t>(at) + most > limit) [[unlikely]] {
      at = open(now);
      if (at == nullptr) return nullptr;
    }
    // The counters of two CPUs may be a hair apart.
    std::uint64_t passed = now > last_ticks_ ? now - last_ticks_ : 0;
    last_ticks_ += passed;
    *at = static_cast<std::uint8_t>(kind);
    return put_number(at + 1, passed);
  }
  [[gnu::always_inline]] void end(std::uint8_t* at) {
    at_ = at;
    block_->publish(static_cast<std::uint32_t>(at - data_of(block_)));  // [trace-block]
  }
  [[gnu::noinline]] std::uint8_t* open(std::uint64_t now);

  std::uint8_t* at_ = nullptr;
  base::Atomic<std::uint8_t*> limit_{nullptr};  // atomic, a hint: the recorder asks for a new block
  std::uint64_t last_ticks_ = 0;
  std::uint64_t last_object_ = 0;
  std::uint64_t current_ = 0;
  Block* block_ = nullptr;
  base::Relaxed<std::uint64_t> lost_ = 0;  // since the trace began
  std::uint32_t lost_told_ = 0;
  std::uint16_t stream_ = 0;
  bool is_outside_ = false;
};
static_assert(sizeof(Buffer) == base::kCacheLine);

namespace detail {
// One for each P, by its index. Made before the first trace begins, and never given back.
extern Buffer* buffers __attribute__((visibility("hidden")));
}  // namespace detail

// The buffer of P number `index`. Only while is_on().
inline Buffer& buffer_of(int index) { return detail::buffers[index]; }

// Program counters are stored as distances from a function of the library.
void anchor();
inline std::uint64_t coded_pc(std::uint64_t pc) {
  return pc == 0 ? 0 : zigzag(pc - reinterpret_cast<std::uint64_t>(&anchor));
}

// For a thread without a P: calls put(buffer) with the outside stream, if events are recorded.
class Outside {
 public:
  template <class F>
  static void with(F put) {
    base::Guard hold(lock_);
    if (detail::magpie_trace_is_on.load(base::relaxed)) put(buffer_);
  }

  static void ask_for_new_block() { buffer_.ask_for_new_block(); }
  static std::uint64_t lost() { return buffer_.lost(); }

 private:
  friend class Recorder;
  static base::Lock lock_;
  static Buffer buffer_;
};

}  // namespace magpie::trace
