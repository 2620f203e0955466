#include <magpie/net/buffered.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "net/error_code.h"

namespace magpie::net {
namespace {

[[noreturn]] void fail_too_long(std::size_t limit) {
  throw std::system_error(std::make_error_code(std::errc::message_size),
                          "magpie: nothing ends within " + std::to_string(limit) + " bytes");
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

// ---- reading

BufferedReader::BufferedReader(Stream& stream, std::size_t capacity)
    : stream_(stream), capacity_(std::max<std::size_t>(capacity, 1)) {}

std::size_t BufferedReader::read_stream(std::span<std::byte> into, const Context* context) {
  return context == nullptr ? stream_.read(into) : stream_.read(into, *context);
}

// Reads once, after what is there, so that at most about `most` bytes are; there are fewer now.
// False: the end.
bool BufferedReader::fill(std::size_t most, const Context* context) {
  if (at_end_) return false;
  if (begin_ == end_) begin_ = end_ = 0;
  if (end_ == memory_.size()) {
    std::size_t held = end_ - begin_;
    if (begin_ >= held && begin_ != 0) {
      std::memmove(memory_.data(), memory_.data() + begin_, held);
      begin_ = 0;
      end_ = held;
    } else {
      // Twice as much each time, so that a long line is moved a few times only, within what may
      // come of it.
      std::size_t room = std::min(memory_.size(), std::max(most, capacity_));
      memory_.resize(memory_.size() + std::max(room, capacity_));
    }
  }
  std::size_t count = read_stream(std::span(memory_).subspan(end_), context);
  end_ += count;
  at_end_ = count == 0;
  return !at_end_;
}

std::string_view BufferedReader::take(std::size_t count) {
  std::string_view taken = as_text(buffered().first(count));
  begin_ += count;
  return taken;
}

std::size_t BufferedReader::read_within(std::span<std::byte> into, const Context* context) {
  if (into.empty()) return 0;
  if (begin_ == end_) {
    if (at_end_) return 0;
    if (into.size() >= capacity_) return read_stream(into, context);
    if (!fill(capacity_, context)) return 0;
  }
  std::size_t count = std::min(into.size(), end_ - begin_);
  std::memcpy(into.data(), take(count).data(), count);
  return count;
}

std::size_t BufferedReader::read(std::span<std::byte> into) { return read_within(into, nullptr); }
std::size_t BufferedReader::read(std::span<std::byte> into, const Context& context) {
  return read_within(into, &context);
}

// `got` is how much there was, also when it throws.
void BufferedReader::read_whole(std::span<std::byte> into, const Context* context,
                                std::size_t& got) {
  for (got = 0; got < into.size();) {
    std::size_t count = read_within(into.subspan(got), context);
    if (count == 0) throw EndOfStream(into.size(), got);
    got += count;
  }
}
void BufferedReader::read_exact(std::span<std::byte> into) {
  std::size_t got;
  read_whole(into, nullptr, got);
}
void BufferedReader::read_exact(std::span<std::byte> into, const Context& context) {
  std::size_t got;
  read_whole(into, &context, got);
}

std::span<const std::byte> BufferedReader::peek_within(std::size_t count, const Context* context) {
  while (end_ - begin_ < count && fill(count, context)) {
  }
  return buffered();
}
std::span<const std::byte> BufferedReader::peek(std::size_t count) {
  return peek_within(count, nullptr);
}
std::span<const std::byte> BufferedReader::peek(std::size_t count, const Context& context) {
  return peek_within(count, &context);
}

std::optional<BufferedReader::Piece> BufferedReader::find_piece(std::string_view delimiter,
                                                                std::size_t limit,
                                                                const Context* context) {
  if (delimiter.empty()) throw std::invalid_argument("magpie: read_until: an empty delimiter");
  std::size_t searched = 0;
  for (;;) {
    std::string_view text = as_text(buffered());
    std::size_t at = text.find(delimiter, searched);
    if (at != text.npos) {
      if (limit < delimiter.size() || at > limit - delimiter.size()) fail_too_long(limit);
      return Piece{at + delimiter.size(), delimiter.size()};
    }
    // A delimiter may have begun already.
    searched = text.size() - std::min(text.size(), delimiter.size() - 1);
    if (text.size() >= limit && !(at_end_ && text.size() == limit)) {
      // At the limit just the end can follow.
      if (text.size() > limit || fill(1, context)) fail_too_long(limit);
      continue;
    }
    if (fill(limit, context)) continue;
    text = as_text(buffered());
    if (text.empty()) return std::nullopt;
    return Piece{text.size(), 0};
  }
}

std::optional<std::string_view> BufferedReader::next_line(std::size_t limit,
                                                          const Context* context) {
  std::optional<Piece> piece = find_piece("\n", limit, context);
  if (!piece) return std::nullopt;
  std::string_view line = take(piece->size);
  line.remove_suffix(piece->delimiter);
  if (piece->delimiter != 0 && line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::optional<std::string> BufferedReader::line_within(std::size_t limit, const Context* context) {
  std::optional<std::string_view> line = next_line(limit, context);
  if (!line) return std::nullopt;
  return std::string(*line);
}
std::optional<std::string> BufferedReader::read_line(std::size_t limit) {
  return line_within(limit, nullptr);
}
std::optional<std::string> BufferedReader::read_line(std::size_t limit, const Context& context) {
  return line_within(limit, &context);
}

std::optional<std::string> BufferedReader::piece_within(std::string_view delimiter,
                                                        std::size_t limit, const Context* context) {
  std::optional<Piece> piece = find_piece(delimiter, limit, context);
  if (!piece) return std::nullopt;
  return std::string(take(piece->size));
}
std::optional<std::string> BufferedReader::read_until(std::string_view delimiter,
                                                      std::size_t limit) {
  return piece_within(delimiter, limit, nullptr);
}
std::optional<std::string> BufferedReader::read_until(std::string_view delimiter, std::size_t limit,
                                                      const Context& context) {
  return piece_within(delimiter, limit, &context);
}

std::string BufferedReader::all_within(std::size_t limit, const Context* context) {
  while (end_ - begin_ <= limit && fill(limit, context)) {
  }
  if (end_ - begin_ > limit) fail_too_long(limit);
  return std::string(take(end_ - begin_));
}
std::string BufferedReader::read_all(std::size_t limit) { return all_within(limit, nullptr); }
std::string BufferedReader::read_all(std::size_t limit, const Context& context) {
  return all_within(limit, &context);
}

std::size_t BufferedReader::read(std::span<std::byte> into, std::error_code& error) {
  return with_error_code(error, [&] { return read(into); });
}
std::size_t BufferedReader::read(std::span<std::byte> into, const Context& context,
                                 std::error_code& error) {
  return with_error_code(error, [&] { return read(into, context); });
}
std::size_t BufferedReader::read_exact(std::span<std::byte> into, std::error_code& error) {
  std::size_t got = 0;
  with_error_code(error, [&] { read_whole(into, nullptr, got); });
  return got;
}
std::size_t BufferedReader::read_exact(std::span<std::byte> into, const Context& context,
                                       std::error_code& error) {
  std::size_t got = 0;
  with_error_code(error, [&] { read_whole(into, &context, got); });
  return got;
}
std::optional<std::string> BufferedReader::read_line(std::size_t limit, std::error_code& error) {
  return with_error_code(error, [&] { return read_line(limit); });
}
std::optional<std::string> BufferedReader::read_line(std::size_t limit, const Context& context,
                                                     std::error_code& error) {
  return with_error_code(error, [&] { return read_line(limit, context); });
}
std::optional<std::string> BufferedReader::read_until(std::string_view delimiter, std::size_t limit,
                                                      std::error_code& error) {
  return with_error_code(error, [&] { return piece_within(delimiter, limit, nullptr); });
}
std::optional<std::string> BufferedReader::read_until(std::string_view delimiter, std::size_t limit,
                                                      const Context& context,
                                                      std::error_code& error) {
  return with_error_code(error, [&] { return piece_within(delimiter, limit, &context); });
}
std::string BufferedReader::read_all(std::size_t limit, std::error_code& error) {
  return with_error_code(error, [&] { return read_all(limit); });
}
std::string BufferedReader::read_all(std::size_t limit, const Context& context,
                                     std::error_code& error) {
  return with_error_code(error, [&] { return read_all(limit, context); });
}
std::span<const std::byte> BufferedReader::peek(std::size_t count, std::error_code& error) {
  return with_error_code(error, [&] { return peek(count); });
}
std::span<const std::byte> BufferedReader::peek(std::size_t count, const Context& context,
                                                std::error_code& error) {
  return with_error_code(error, [&] { return peek(count, context); });
}

// ---- writing

BufferedWriter::BufferedWriter(Stream& stream, std::size_t capacity)
    : stream_(stream), capacity_(std::max<std::size_t>(capacity, 1)) {}

BufferedWriter::~BufferedWriter() {
  if (failed_) return;
  try {
    flush();
  } catch (...) {  // there is nobody to tell
  }
}

void BufferedWriter::write_within(std::span<const std::byte> bytes, const Context* context) {
  if (failed_ || bytes.size() > capacity_ - memory_.size()) return write_out(bytes, context);
  if (memory_.capacity() == 0) memory_.reserve(capacity_);
  memory_.insert(memory_.end(), bytes.begin(), bytes.end());
}
void BufferedWriter::write(std::span<const std::byte> bytes) { write_within(bytes, nullptr); }
void BufferedWriter::write(std::span<const std::byte> bytes, const Context& context) {
  write_within(bytes, &context);
}

void BufferedWriter::flush_within(const Context* context) {
  if (failed_ || !memory_.empty()) write_out({}, context);
}
void BufferedWriter::flush() { flush_within(nullptr); }
void BufferedWriter::flush(const Context& context) { flush_within(&context); }

void BufferedWriter::write_out(std::span<const std::byte> more, const Context* context) {
  if (failed_) throw std::system_error(failed_, "magpie: write after an earlier error");
  const std::span<const std::byte> parts[] = {memory_, more};
  try {
    if (context == nullptr) {
      stream_.write_parts(parts);
    } else {
      stream_.write_parts(parts, *context);
    }
  } catch (const std::system_error& error) {
    failed_ = error.code();
    throw;
  } catch (...) {
    failed_ = std::make_error_code(std::errc::io_error);
    throw;
  }
  memory_.clear();
}

void BufferedWriter::write(std::span<const std::byte> bytes, std::error_code& error) {
  with_error_code(error, [&] { write(bytes); });
}
void BufferedWriter::write(std::span<const std::byte> bytes, const Context& context,
                           std::error_code& error) {
  with_error_code(error, [&] { write(bytes, context); });
}
void BufferedWriter::flush(std::error_code& error) {
  with_error_code(error, [&] { flush(); });
}
void BufferedWriter::flush(const Context& context, std::error_code& error) {
  with_error_code(error, [&] { flush(context); });
}

}  // namespace magpie::net
