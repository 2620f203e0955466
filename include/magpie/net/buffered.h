// buffered.h: reads and writes a stream through memory: lines and small pieces without a system
// call for each.
//
//   BufferedReader reader(conn);
//   for (std::string_view line : reader.lines()) ...
//
// The stream may be any Stream. It has to outlive the reader or writer, and nobody else may read or
// write it meanwhile. One goroutine may use a reader or writer at a time; a reader and a writer of
// the same stream are independent. Calls throw the errors of the stream, and
// std::errc::message_size for a piece that is longer than its limit.
//
// Each call that may fail has a form with a std::error_code&, which throws nothing but
// std::bad_alloc; it reports EndOfStream as StreamErrc::end_of_stream. Each call that may block has
// a form with a Context, which fails with the context's error when the context is over and the call
// has to wait; bytes that have come stay in the reader for the next call.
#pragma once

#include <magpie/detail/cxx20.h>

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <magpie/context.h>
#include <magpie/detail/api.h>
#include <magpie/net/stream.h>

namespace magpie::net {

// Reads lines and pieces from a stream.
class MAGPIE_API BufferedReader {
 public:
  static constexpr std::size_t kUsualLimit = 64 * 1024;

  // Reads up to `capacity` bytes at a time. The memory grows when a line or a peek() needs more.
  explicit BufferedReader(Stream& stream, std::size_t capacity = 8 * 1024);
  BufferedReader(const BufferedReader&) = delete;
  BufferedReader& operator=(const BufferedReader&) = delete;

  // Blocks until there is at least one byte, as Stream::read. 0: the end of the stream.
  std::size_t read(std::span<std::byte> into);
  std::size_t read(std::span<std::byte> into, std::error_code& error);
  std::size_t read(std::span<std::byte> into, const Context& context);
  std::size_t read(std::span<std::byte> into, const Context& context, std::error_code& error);
  // Blocks until the span is full. Throws EndOfStream too; the bytes before the end are in the span
  // then. The forms with an error_code return how many bytes that are.
  void read_exact(std::span<std::byte> into);
  std::size_t read_exact(std::span<std::byte> into, std::error_code& error);
  void read_exact(std::span<std::byte> into, const Context& context);
  std::size_t read_exact(std::span<std::byte> into, const Context& context, std::error_code& error);

  // Blocks until there is a line; returns it without its "\n" or "\r\n". The last line may have
  // none. Nullopt: the end of the stream. The limit includes the line end. A longer line is an
  // error that takes nothing: read() returns its bytes.
  std::optional<std::string> read_line(std::size_t limit = kUsualLimit);
  std::optional<std::string> read_line(std::size_t limit, std::error_code& error);
  std::optional<std::string> read_line(std::size_t limit, const Context& context);
  std::optional<std::string> read_line(std::size_t limit, const Context& context,
                                       std::error_code& error);
  std::optional<std::string> read_line(const Context& context) {
    return read_line(kUsualLimit, context);
  }
  // Blocks until there is a delimiter; returns everything up to it, with it. A last piece without a
  // delimiter comes without. Nullopt: the end of the stream. Throws std::invalid_argument for an
  // empty delimiter (an error_code says errc::invalid_argument).
  std::optional<std::string> read_until(std::string_view delimiter,
                                        std::size_t limit = kUsualLimit);
  std::optional<std::string> read_until(std::string_view delimiter, std::size_t limit,
                                        std::error_code& error);
  std::optional<std::string> read_until(std::string_view delimiter, std::size_t limit,
                                        const Context& context);
  std::optional<std::string> read_until(std::string_view delimiter, std::size_t limit,
                                        const Context& context, std::error_code& error);
  std::optional<std::string> read_until(std::string_view delimiter, const Context& context) {
    return read_until(delimiter, kUsualLimit, context);
  }
  // Blocks until the end of the stream; returns everything up to it.
  std::string read_all(std::size_t limit);
  std::string read_all(std::size_t limit, std::error_code& error);
  std::string read_all(std::size_t limit, const Context& context);
  std::string read_all(std::size_t limit, const Context& context, std::error_code& error);

  // Blocks until there are `count` bytes, or the stream ends; returns what comes next, without
  // taking it. The span may be longer. It is valid until the next call.
  std::span<const std::byte> peek(std::size_t count);
  std::span<const std::byte> peek(std::size_t count, std::error_code& error);
  std::span<const std::byte> peek(std::size_t count, const Context& context);
  std::span<const std::byte> peek(std::size_t count, const Context& context,
                                  std::error_code& error);
  // The bytes that are there already. Never blocks.
  std::span<const std::byte> buffered() const { return {memory_.data() + begin_, end_ - begin_}; }

  // The remaining lines: for (std::string_view line : reader.lines()). Each is valid until the
  // next.
  class Lines;
  Lines lines(std::size_t limit = kUsualLimit);
  Lines lines(std::size_t limit, const Context& context);

  Stream& stream() { return stream_; }

 private:
  struct Piece {
    std::size_t size;       // with the delimiter
    std::size_t delimiter;  // its size, 0 at the end of the stream
  };
  // The context may be null.
  std::size_t read_stream(std::span<std::byte> into, const Context* context);
  std::size_t read_within(std::span<std::byte> into, const Context* context);
  void read_whole(std::span<std::byte> into, const Context* context, std::size_t& got);
  std::string all_within(std::size_t limit, const Context* context);
  std::span<const std::byte> peek_within(std::size_t count, const Context* context);
  std::optional<std::string> line_within(std::size_t limit, const Context* context);
  std::optional<std::string> piece_within(std::string_view delimiter, std::size_t limit,
                                          const Context* context);
  std::optional<Piece> find_piece(std::string_view delimiter, std::size_t limit,
                                  const Context* context);
  std::optional<std::string_view> next_line(std::size_t limit, const Context* context);
  bool fill(std::size_t most, const Context* context);
  std::string_view take(std::size_t count);

  Stream& stream_;
  const std::size_t capacity_;
  std::vector<std::byte> memory_;
  std::size_t begin_ = 0, end_ = 0;  // of what is there, in memory_
  bool at_end_ = false;
};

class BufferedReader::Lines {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::string_view*;
    using reference = std::string_view;

    Iterator() = default;
    std::string_view operator*() const { return *line_; }
    const std::string_view* operator->() const { return &*line_; }
    // Blocks until there is a line, or the stream ends. Throws as read_line().
    Iterator& operator++() {
      line_ = reader_->next_line(limit_, context_ ? &*context_ : nullptr);
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return !it.line_; }

   private:
    friend class Lines;
    Iterator(BufferedReader& reader, std::size_t limit, const std::optional<Context>& context)
        : reader_(&reader), limit_(limit), context_(context) {
      ++*this;
    }
    BufferedReader* reader_ = nullptr;
    std::size_t limit_ = 0;
    std::optional<Context> context_;
    std::optional<std::string_view> line_;
  };

  Iterator begin() { return Iterator(reader_, limit_, context_); }  // blocks
  static std::default_sentinel_t end() { return {}; }

 private:
  friend class BufferedReader;
  Lines(BufferedReader& reader, std::size_t limit, const std::optional<Context>& context)
      : reader_(reader), limit_(limit), context_(context) {}
  BufferedReader& reader_;
  const std::size_t limit_;
  const std::optional<Context> context_;
};

inline BufferedReader::Lines BufferedReader::lines(std::size_t limit) {
  return Lines(*this, limit, std::nullopt);
}
inline BufferedReader::Lines BufferedReader::lines(std::size_t limit, const Context& context) {
  return Lines(*this, limit, context);
}

// Writes small pieces to a stream in large ones. After an error every later call fails with that
// error.
class MAGPIE_API BufferedWriter {
 public:
  explicit BufferedWriter(Stream& stream, std::size_t capacity = 8 * 1024);
  // Writes what is left, and may block for it. Cannot report an error: call flush() first if it
  // matters. Writes nothing after an error.
  ~BufferedWriter();
  BufferedWriter(const BufferedWriter&) = delete;
  BufferedWriter& operator=(const BufferedWriter&) = delete;

  // Blocks only if the memory is full. Bytes that do not fit go out together with the memory,
  // without being copied.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void write(std::span<const std::byte> bytes, std::error_code& error);
  void write(std::string_view text, std::error_code& error) {
    write(std::as_bytes(std::span(text)), error);
  }
  void write(std::span<const std::byte> bytes, const Context& context);
  void write(std::string_view text, const Context& context) {
    write(std::as_bytes(std::span(text)), context);
  }
  void write(std::span<const std::byte> bytes, const Context& context, std::error_code& error);
  void write(std::string_view text, const Context& context, std::error_code& error) {
    write(std::as_bytes(std::span(text)), context, error);
  }
  // Blocks until the stream has taken all bytes.
  void flush();
  void flush(std::error_code& error);
  void flush(const Context& context);
  void flush(const Context& context, std::error_code& error);

  // How many bytes wait to be written.
  std::size_t buffered() const { return memory_.size(); }
  Stream& stream() { return stream_; }

 private:
  // The context may be null.
  void write_within(std::span<const std::byte> bytes, const Context* context);
  void flush_within(const Context* context);
  void write_out(std::span<const std::byte> more, const Context* context);

  Stream& stream_;
  const std::size_t capacity_;
  std::vector<std::byte> memory_;
  std::error_code failed_;
};

}  // namespace magpie::net
