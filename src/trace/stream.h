// stream.h: the events of one stream, from its blocks, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/event.h"
#include "trace/format.h"
#include "trace/storage.h"

namespace magpie::trace {

// The strings of a trace, each once. 0 is the empty string.
class Strings {
 public:
  std::uint64_t number_of(std::string_view text);
  std::string_view operator[](std::uint64_t number) const {
    return number != 0 && number <= texts_.size() ? texts_[number - 1] : std::string_view{};
  }

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, std::uint64_t> numbers_;
};

// What decoding needs to know of a generation.
struct Decoding {
  std::vector<std::string> kinds;  // the arguments of each kind
  std::uint64_t anchor = 0;
};

struct BlockRef {
  BlockHeader header;
  std::uint64_t place;  // of its payload, in the storage
  std::size_t bytes;    // that are there
  const Decoding* decoding = nullptr;
};

// A longer event, and all that follows it in its block, is taken for broken.
inline constexpr std::size_t kMostEventBytes = 16384;

// Holds a piece of one block at a time.
class Stream {
 public:
  // The storage and the strings live longer.
  Stream(std::int32_t proc, std::vector<BlockRef> blocks, const Storage& storage, Strings& strings);
  Stream(Stream&&) noexcept = default;  // a copy would read in the other's piece
  Stream& operator=(Stream&&) noexcept = default;

  // Decodes the next event into head() and ticks(). False: there are no more.
  bool advance();

  const Event& head() const { return head_; }
  Event& head() { return head_; }
  std::uint64_t ticks() const { return ticks_; }
  // The goroutine that ran on the P when the block of head() began.
  std::uint64_t current_at_block() const { return current_at_block_; }
  bool is_first_of_block() const { return is_first_of_block_; }

 private:
  bool begin_next_block();
  std::size_t left() const { return static_cast<std::size_t>(piece_end_ - input_.at()); }
  void read_on();
  void leave_block();
  bool decode_event();

  const Storage* storage_;
  Strings* strings_;
  std::vector<BlockRef> blocks_;
  std::size_t next_block_ = 0;
  // of the block
  const Decoding* decoding_ = nullptr;
  std::vector<std::uint8_t> piece_;
  Input input_{nullptr, 0};                  // what is left of the piece
  const std::uint8_t* piece_end_ = nullptr;  // where that ends
  std::uint64_t next_place_ = 0;             // what follows the piece, in the storage
  std::size_t unread_ = 0;                   // how much that is
  Event head_;
  std::uint64_t ticks_ = 0;
  std::uint64_t last_object_ = 0;
  std::uint64_t current_at_block_ = 0;
  bool is_first_of_block_ = false;
};

}  // namespace magpie::trace
