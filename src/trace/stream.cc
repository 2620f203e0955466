#include "trace/stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace magpie::trace {
namespace {

constexpr std::size_t kPieceBytes = 65536;
static_assert(kPieceBytes >= 2 * kMostEventBytes);

}  // namespace

std::uint64_t Strings::number_of(std::string_view text) {
  if (text.empty()) return 0;
  if (auto there = numbers_.find(text); there != numbers_.end()) return there->second;
  texts_.emplace_back(text);
  numbers_.emplace(texts_.back(), texts_.size());
  return texts_.size();
}

Stream::Stream(std::int32_t proc, std::vector<BlockRef> blocks, const Storage& storage,
               Strings& strings)
    : storage_(&storage), strings_(&strings), blocks_(std::move(blocks)) {
  head_.proc = proc;
  // A block that was written while its P slept may come late in the file.
  std::stable_sort(blocks_.begin(), blocks_.end(), [](const BlockRef& a, const BlockRef& b) {
    return a.header.first_ticks < b.header.first_ticks;
  });
}

bool Stream::begin_next_block() {
  if (next_block_ == blocks_.size()) return false;
  const BlockRef& block = blocks_[next_block_++];
  next_place_ = block.place;
  leave_block();
  unread_ = block.bytes;
  read_on();
  decoding_ = block.decoding;
  ticks_ = std::max(ticks_, block.header.first_ticks);
  last_object_ = 0;
  current_at_block_ = input_.number();
  is_first_of_block_ = true;
  return true;
}

// What is left of the piece, and what follows it, become the new piece.
void Stream::read_on() {
  const std::size_t kept = left();
  const std::size_t more = std::min(unread_, kPieceBytes - kept);
  if (kept != 0) std::memmove(piece_.data(), input_.at(), kept);
  if (piece_.size() < kept + more) piece_.resize(kept + more);
  const std::size_t got = storage_->read(next_place_, piece_.data() + kept, more);
  next_place_ += got;
  unread_ = got == more ? unread_ - got : 0;  // the file has become shorter
  input_ = Input(piece_.data(), kept + got);
  piece_end_ = piece_.data() + kept + got;
}

// What is left of it is skipped.
void Stream::leave_block() {
  input_ = Input(nullptr, 0);
  piece_end_ = nullptr;
  unread_ = 0;
}

bool Stream::advance() {
  is_first_of_block_ = false;
  for (;;) {
    if (unread_ != 0 && left() < kMostEventBytes) read_on();
    if (input_.is_at_end() && !begin_next_block()) return false;
    if (!input_.is_at_end() && decode_event()) return true;
  }
}

// False: the block is broken from here on.
bool Stream::decode_event() {
  std::uint8_t kind = input_.byte();
  ticks_ += input_.number();
  if (kind >= decoding_->kinds.size()) {
    leave_block();
    return false;
  }
  head_.kind = kind < kKinds ? static_cast<Kind>(kind) : Kind::none;
  head_.args = {};
  std::size_t index = 0;
  for (char type : decoding_->kinds[kind]) {
    if (input_.is_broken()) break;  // a damaged file may tell of a million arguments
    std::uint64_t value;
    if (type == 's') {
      value = strings_->number_of(input_.string());
    } else {
      value = input_.number();
      if (type == 'p' && value != 0) value = unzigzag(value) + decoding_->anchor;
      if (type == 'o') value = last_object_ += unzigzag(value);
    }
    if (index < kMostArgs) head_.args[index++] = value;
  }
  if (!input_.is_broken()) return true;
  leave_block();
  return false;
}

}  // namespace magpie::trace
