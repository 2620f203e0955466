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
  Strings* strings = nullptr;
};

struct BlockRef {
  BlockHeader header;
  const std::uint8_t* payload;
  std::size_t bytes;  // that are there
  const Decoding* decoding = nullptr;
};

class Stream {
 public:
  Stream(std::int32_t proc, std::vector<BlockRef> blocks);

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
  bool decode_event();

  const Decoding* decoding_ = nullptr;  // of the block
  std::vector<BlockRef> blocks_;
  std::size_t next_block_ = 0;
  Input input_{nullptr, 0};
  Event head_;
  std::uint64_t ticks_ = 0;
  std::uint64_t last_object_ = 0;
  std::uint64_t current_at_block_ = 0;
  bool is_first_of_block_ = false;
};

}  // namespace magpie::trace
