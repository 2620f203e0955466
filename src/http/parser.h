// parser.h: HTTP/1 messages from bytes. The grammar is Boost.Beast's; this adds what it lets
// through.
//
// A message begins with its head, which is parsed from one buffer that holds all of it so far; what
// was found is kept as places in that buffer. A body in chunks is decoded from there on. A body
// with a length needs no parser.
//
// Beast 1.74 accepts the following, which servers and proxies understand differently, the stuff of
// request smuggling. Here they are refused (tests/unit/http/smuggling_test.cc):
//   - Content-Length twice or as a list, with equal values
//   - Transfer-Encoding that is not exactly "chunked": then Beast sees no body at all
//   - chunks in HTTP/1.0
//   - folded lines, and control characters in chunk extensions
//   - no Host, or two, or one that is no host
//   - trailers without limits
//   - chunks that are hardly more than their headers, in requests
// Its limit on the header counts from the last field that was complete; here it counts from the
// first byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace magpie::http {

// A place in the buffer that a message begins in.
struct Slice {
  std::uint32_t at = 0;
  std::uint32_t size = 0;
  std::string_view of(const char* buffer) const { return {buffer + at, size}; }
};

struct Head {
  Slice method, target;  // of a request
  int status = 0;        // of a response
  int version = 11;      // 10 or 11
  bool keep_alive = false;
  bool chunked = false;
  bool expects_continue = false;
  bool other_expectation = false;
  std::optional<std::uint64_t> content_length;
  bool has_body = false;  // of a response without length or chunks: until the end of the stream

  struct Field {
    Slice name, value;
  };
  std::vector<Field> fields;
};

struct HeadLimits {
  std::size_t bytes;
  std::size_t fields;
};

class Parser {
 public:
  enum class Kind : std::uint8_t {
    request,
    response,
    response_to_head,  // has no body whatever its head says
  };
  enum class Progress : std::uint8_t { need_more, complete, refused };

  Parser() = default;
  ~Parser() { forget(); }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  // Starts a message.
  void begin(Kind kind, const HeadLimits& limits);

  // The buffer holds the message from its first byte. To be called again with more of it, until it
  // is no longer need_more. Throws std::bad_alloc.
  Progress parse_head(std::string_view buffer);
  const Head& head() const { return head_; }
  // Bytes of the head, once it is complete.
  std::size_t head_bytes() const { return used_; }

  struct Decoded {
    Progress progress;  // complete: that was the whole body, trailer included
    std::size_t taken;  // from `in`
    std::size_t given;  // to `out`
  };
  // Decodes a body in chunks. need_more with nothing taken and nothing given: the rest of `in` is
  // no whole element.
  Decoded decode(std::string_view in, std::span<char> out);

  // What to answer when it is refused.
  int refusal() const { return refusal_; }

 private:
  struct Access;
  template <bool is_request>
  class Sink;

  void forget() noexcept;
  template <bool is_request>
  Progress parse_head_as(std::string_view buffer);
  template <bool is_request>
  Decoded decode_as(std::string_view in, std::span<char> out);
  template <bool is_request>
  Sink<is_request>& sink();
  Progress refuse(int status) {
    refusal_ = status;
    return Progress::refused;
  }

  Kind kind_ = Kind::request;
  bool begun_ = false;
  int refusal_ = 0;
  HeadLimits limits_{};
  std::size_t used_ = 0;
  std::uint64_t chunk_wire_ = 0;  // bytes of the body in chunks, with what is around them
  std::uint64_t chunk_data_ = 0;  // bytes of the body itself
  Head head_;
  alignas(16) std::byte storage_[192];  // a Sink, made anew for each message
};

}  // namespace magpie::http
