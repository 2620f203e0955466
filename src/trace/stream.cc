#include "trace/stream.h"

#include <algorithm>
#include <utility>

namespace magpie::trace {

std::uint64_t Strings::number_of(std::string_view text) {
  if (text.empty()) return 0;
  if (auto there = numbers_.find(text); there != numbers_.end()) return there->second;
  texts_.emplace_back(text);
  numbers_.emplace(texts_.back(), texts_.size());
  return texts_.size();
}

Stream::Stream(std::int32_t proc, std::vector<BlockRef> blocks) : blocks_(std::move(blocks)) {
  head_.proc = proc;
  // A block that was written while its P slept may come late in the file.
  std::stable_sort(blocks_.begin(), blocks_.end(), [](const BlockRef& a, const BlockRef& b) {
    return a.header.first_ticks < b.header.first_ticks;
  });
}

bool Stream::begin_next_block() {
  if (next_block_ == blocks_.size()) return false;
  const BlockRef& block = blocks_[next_block_++];
  input_ = Input(block.payload, block.bytes);
  decoding_ = block.decoding;
  ticks_ = std::max(ticks_, block.header.first_ticks);
  last_object_ = 0;
  current_at_block_ = input_.number();
  is_first_of_block_ = true;
  return true;
}

bool Stream::advance() {
  is_first_of_block_ = false;
  for (;;) {
    if (input_.is_at_end() && !begin_next_block()) return false;
    if (!input_.is_at_end() && decode_event()) return true;
  }
}

// False: the block is broken from here on, and the rest of it is skipped.
bool Stream::decode_event() {
  std::uint8_t kind = input_.byte();
  ticks_ += input_.number();
  if (kind >= decoding_->kinds.size()) {
    input_ = Input(nullptr, 0);
    return false;
  }
  head_.kind = kind < kKinds ? static_cast<Kind>(kind) : Kind::none;
  head_.args = {};
  std::size_t index = 0;
  for (char type : decoding_->kinds[kind]) {
    std::uint64_t value;
    if (type == 's') {
      value = decoding_->strings->number_of(input_.string());
    } else {
      value = input_.number();
      if (type == 'p' && value != 0) value = unzigzag(value) + decoding_->anchor;
      if (type == 'o') value = last_object_ += unzigzag(value);
    }
    if (index < kMostArgs) head_.args[index++] = value;
  }
  return !input_.is_broken();
}

}  // namespace magpie::trace
