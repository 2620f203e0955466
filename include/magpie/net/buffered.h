// buffered.h: reads and writes a stream through memory: lines and small pieces without a system
// call for each.
//
//   BufferedReader reader(conn);
//   for (std::string_view line : reader.lines()) ...
//
// Over any Stream, which has to outlive them and must not be read, or written, past them meanwhile.
// One goroutine at a time; a reader and a writer of the same stream are two things. Errors are
// those of the stream, and std::errc::message_size for what is longer than its limit. Each call
// that may fail exists with a std::error_code& too, and throws nothing then but std::bad_alloc;
// EndOfStream is StreamErrc::end_of_stream there. Those with a Context end with it, if they have to
// wait; what has come stays in the reader for the next call.
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

#include <magpie/net/stream.h>

namespace magpie::net {

class BufferedReader {
 public:
  static constexpr std::size_t kUsualLimit = 64 * 1024;

  // Reads up to `capacity` bytes at a time. The memory grows when a line or a peek() needs more.
  explicit BufferedReader(Stream& stream, std::size_t capacity = 8 * 1024);
  BufferedReader(const BufferedReader&) = delete;
  BufferedReader& operator=(const BufferedReader&) = delete;

  // As Stream::read: blocks until there is at least one byte; 0: the end.
  std::size_t read(std::span<std::byte> into);
  std::size_t read(std::span<std::byte> into, std::error_code& error);
  std::size_t read(std::span<std::byte> into, const Context& context);
  std::size_t read(std::span<std::byte> into, const Context& context, std::error_code& error);
  // All of it. Throws EndOfStream too; what there was is read then: with an error_code it returns how
  // much that is.
  void read_exact(std::span<std::byte> into);
  std::size_t read_exact(std::span<std::byte> into, std::error_code& error);
  void read_exact(std::span<std::byte> into, const Context& context);
  std::size_t read_exact(std::span<std::byte> into, const Context& context, std::error_code& error);

  // The next line, without its "\n" or "\r\n". The last one may have none. Nullopt: the end. The
  // limit counts the line's end too. A longer line is an error, of which nothing is taken: read()
  // gives what there is of it.
  std::optional<std::string> read_line(std::size_t limit = kUsualLimit);
  std::optional<std::string> read_line(std::size_t limit, std::error_code& error);
  std::optional<std::string> read_line(std::size_t limit, const Context& context);
  std::optional<std::string> read_line(std::size_t limit, const Context& context,
                                       std::error_code& error);
  std::optional<std::string> read_line(const Context& context) {
    return read_line(kUsualLimit, context);
  }
  // Up to a delimiter, and with it, so that a last piece without one can be told. Nullopt: the end.
  // Throws std::invalid_argument for an empty delimiter (an error_code says
  // errc::invalid_argument).
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
  // Everything up to the end.
  std::string read_all(std::size_t limit);
  std::string read_all(std::size_t limit, std::error_code& error);
  std::string read_all(std::size_t limit, const Context& context);
  std::string read_all(std::size_t limit, const Context& context, std::error_code& error);

  // What comes next, without taking it. Blocks until there are `count` bytes, less only at the end.
  // May be more. Good until the next call.
  std::span<const std::byte> peek(std::size_t count);
  std::span<const std::byte> peek(std::size_t count, std::error_code& error);
  std::span<const std::byte> peek(std::size_t count, const Context& context);
  std::span<const std::byte> peek(std::size_t count, const Context& context,
                                  std::error_code& error);
  // What is there already. Does not block.
  std::span<const std::byte> buffered() const { return {memory_.data() + begin_, end_ - begin_}; }

  // The lines that are left, each good until the next: for (std::string_view line :
  // reader.lines()).
  class Lines;
  Lines lines(std::size_t limit = kUsualLimit);

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
    // Blocks.
    Iterator& operator++() {
      line_ = reader_->next_line(limit_, nullptr);
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return !it.line_; }

   private:
    friend class Lines;
    Iterator(BufferedReader& reader, std::size_t limit) : reader_(&reader), limit_(limit) {
      ++*this;
    }
    BufferedReader* reader_ = nullptr;
    std::size_t limit_ = 0;
    std::optional<std::string_view> line_;
  };

  Iterator begin() { return Iterator(reader_, limit_); }  // blocks
  static std::default_sentinel_t end() { return {}; }

 private:
  friend class BufferedReader;
  Lines(BufferedReader& reader, std::size_t limit) : reader_(reader), limit_(limit) {}
  BufferedReader& reader_;
  const std::size_t limit_;
};

inline BufferedReader::Lines BufferedReader::lines(std::size_t limit) {
  return Lines(*this, limit);
}

// After an error nothing more is written: every later call fails with the same.
class BufferedWriter {
 public:
  explicit BufferedWriter(Stream& stream, std::size_t capacity = 8 * 1024);
  // Writes what is left, and may block for it. It cannot say whether that went well: flush() first
  // if it matters. After an error it writes nothing.
  ~BufferedWriter();
  BufferedWriter(const BufferedWriter&) = delete;
  BufferedWriter& operator=(const BufferedWriter&) = delete;

  // Blocks only if the memory is full. What does not fit goes out together with what is there,
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
  // Blocks until all is written to the stream.
  void flush();
  void flush(std::error_code& error);
  void flush(const Context& context);
  void flush(const Context& context, std::error_code& error);

  // What waits to be written, in bytes.
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
