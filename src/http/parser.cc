#include "http/parser.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <utility>

// One of Beast's assertions is wrong: it fails, and would end the program, when the last chunk
// arrives as "0 CR LF CR" and nothing more yet. The code behind it is right, and tests/fuzz runs it
// under AddressSanitizer.
#define BOOST_DISABLE_ASSERTS
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "http/target.h"
#include "http/text.h"

namespace magpie::http {

namespace beast = boost::beast::http;
using ErrorCode = boost::beast::error_code;
using Text = boost::beast::string_view;

namespace {

constexpr std::size_t kMaxChunkExtension = 256;
constexpr std::size_t kFieldMarks = 4;  // ": " and the line end
// What may be around the bytes of a body in chunks: many small ones without extensions are fine.
constexpr std::uint64_t kWireFor1Byte = 8;
constexpr std::uint64_t kWireAtMost = 64 * 1024;

std::string_view view(Text text) { return {text.data(), text.size()}; }

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Beast says "bad version" for a version it does not know, and for a line that does not end as it
// should.
bool names_another_version(std::string_view line) {
  line = line.substr(0, line.find_first_of("\r\n"));
  if (line.size() < 8) return false;
  std::string_view end = line.substr(line.size() - 8);
  return end.starts_with("HTTP/") && all_digits(end.substr(5, 1)) && end[6] == '.' &&
         all_digits(end.substr(7, 1)) && end != "HTTP/1.0" && end != "HTTP/1.1";
}

}  // namespace

template <bool is_request>
class Parser::Sink final : public beast::basic_parser<is_request> {
 public:
  explicit Sink(Parser& parser) : parser_(parser) {
    this->eager(false);
    this->header_limit(
        static_cast<std::uint32_t>(std::min<std::size_t>(parser.limits_.bytes, 1u << 30)));
    // Lengths are checked by the owner. "No limit" would be none at all, but Beast compares that
    // wrongly.
    this->body_limit(~std::uint64_t{0});
    if (parser.kind_ == Kind::response_to_head) this->skip(true);
  }

  std::string_view buffer{};  // what is parsed
  std::span<char> out{};      // while a body is decoded
  std::size_t given = 0;
  bool line_done = false;
  bool closes = false;  // "Connection: close"
  int hosts = 0;

 private:
  void refuse(int status, ErrorCode& error) {
    parser_.refusal_ = status;
    error = beast::error::bad_value;
  }

  bool in_buffer(Text text) const {
    std::less<const char*> before;
    return !before(text.data(), buffer.data()) &&
           !before(buffer.data() + buffer.size(), text.data() + text.size());
  }
  Slice slice(Text text) const {
    return {static_cast<std::uint32_t>(text.data() - buffer.data()),
            static_cast<std::uint32_t>(text.size())};
  }

  void on_request_impl(beast::verb, Text method, Text target, int version, ErrorCode&) override {
    line_done = true;
    parser_.head_.method = slice(method);
    parser_.head_.target = slice(target);
    parser_.head_.version = version;
  }
  void on_response_impl(int status, Text, int version, ErrorCode&) override {
    line_done = true;
    parser_.head_.status = status;
    parser_.head_.version = version;
  }

  void on_field_impl(beast::field name, Text name_text, Text value, ErrorCode& error) override {
    Head& head = parser_.head_;
    // A folded line was put together elsewhere, or begins after a line end.
    if (!in_buffer(value) || std::find(name_text.end(), value.data(), '\r') != value.data())
      return refuse(400, error);
    if (this->is_header_done()) {
      // Of the trailer, which nobody asked for. It has the limits of a header.
      trailer_bytes_ += name_text.size() + value.size() + kFieldMarks;
      if (++trailer_fields_ > parser_.limits_.fields || trailer_bytes_ > parser_.limits_.bytes)
        refuse(431, error);
      return;
    }
    if (head.fields.size() >= parser_.limits_.fields) return refuse(431, error);
    head.fields.push_back({slice(name_text), slice(value)});
    switch (name) {
      case beast::field::host:
        ++hosts;
        // Empty for a client that asks for no host in particular.
        if (is_request && !value.empty() && !is_authority(view(value))) refuse(400, error);
        break;
      case beast::field::content_length:
        if (!all_digits(view(value)) || std::exchange(had_length_, true)) refuse(400, error);
        break;
      case beast::field::connection:
        if (has_option(view(value), "close")) closes = true;
        break;
      case beast::field::transfer_encoding:
        if (!same_name(view(value), "chunked")) return refuse(501, error);
        if (head.version < 11) refuse(400, error);
        break;
      case beast::field::expect:
        (same_name(view(value), "100-continue") ? head.expects_continue : head.other_expectation) =
            true;
        break;
      default:
        break;
    }
  }

  void on_header_impl(ErrorCode&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorCode&) override {}
  std::size_t on_body_impl(Text, ErrorCode&) override { return 0; }  // the owner reads it

  void on_chunk_header_impl(std::uint64_t, Text extension, ErrorCode& error) override {
    std::string_view text = view(extension);
    bool control = std::any_of(text.begin(), text.end(), [](char c) {
      return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
    });
    if (control || text.size() > kMaxChunkExtension) refuse(400, error);
  }
  std::size_t on_chunk_body_impl(std::uint64_t, Text body, ErrorCode&) override {
    std::size_t n = std::min(body.size(), out.size() - given);
    std::memcpy(out.data() + given, body.data(), n);
    given += n;
    return n;
  }
  void on_finish_impl(ErrorCode&) override {}

  Parser& parser_;
  bool had_length_ = false;
  std::size_t trailer_fields_ = 0;
  std::size_t trailer_bytes_ = 0;
};

template <bool is_request>
Parser::Sink<is_request>& Parser::sink() {
  return *std::launder(reinterpret_cast<Sink<is_request>*>(storage_));
}

void Parser::forget() noexcept {
  if (!std::exchange(begun_, false)) return;
  if (kind_ == Kind::request) {
    sink<true>().~Sink();
  } else {
    sink<false>().~Sink();
  }
}

void Parser::begin(Kind kind, const HeadLimits& limits) {
  static_assert(sizeof(Sink<true>) <= sizeof storage_ && sizeof(Sink<false>) <= sizeof storage_);
  static_assert(alignof(Sink<true>) <= 16);
  forget();
  kind_ = kind;
  limits_ = limits;
  refusal_ = 0;
  used_ = 0;
  chunk_wire_ = chunk_data_ = 0;
  std::vector<Head::Field> fields = std::move(head_.fields);  // keeps its memory
  fields.clear();
  head_ = Head{};
  head_.fields = std::move(fields);
  if (kind == Kind::request) {
    new (storage_) Sink<true>(*this);
  } else {
    new (storage_) Sink<false>(*this);
  }
  begun_ = true;
}

template <bool is_request>
Parser::Progress Parser::parse_head_as(std::string_view buffer) {
  Sink<is_request>& parser = sink<is_request>();
  parser.buffer = buffer.substr(0, limits_.bytes);
  const bool all = buffer.size() <= limits_.bytes;
  ErrorCode error;
  while (!parser.is_header_done()) {
    std::string_view rest = parser.buffer.substr(used_);
    used_ += parser.put({rest.data(), rest.size()}, error);
    if (error == beast::error::need_more || error == beast::error::header_limit) {
      if (error == beast::error::need_more && all && buffer.size() < limits_.bytes)
        return Progress::need_more;
      const bool in_line =
          !parser.line_done && parser.buffer.find("\r\n") == std::string_view::npos;
      return refuse(is_request && in_line ? 414 : 431);
    }
    if (!error) continue;
    if (refusal_ != 0) return Progress::refused;
    return refuse(is_request && error == beast::error::bad_version && names_another_version(rest)
                      ? 505
                      : 400);
  }
  // Beast lets "keep-alive" win over "close" in HTTP/1.0 (RFC 9112, 9.3: close does).
  head_.keep_alive = parser.keep_alive() && !parser.closes;
  head_.chunked = parser.chunked();
  if (auto length = parser.content_length()) head_.content_length = *length;
  head_.has_body = !parser.is_done();
  if (is_request && (head_.version == 11 ? parser.hosts != 1 : parser.hosts > 1))
    return refuse(400);
  return Progress::complete;
}

Parser::Progress Parser::parse_head(std::string_view buffer) {
  return kind_ == Kind::request ? parse_head_as<true>(buffer) : parse_head_as<false>(buffer);
}

template <bool is_request>
Parser::Decoded Parser::decode_as(std::string_view in, std::span<char> out) {
  Sink<is_request>& parser = sink<is_request>();
  parser.out = out;
  parser.given = 0;
  std::size_t taken = 0;
  ErrorCode error;
  while (!parser.is_done()) {
    std::string_view rest = in.substr(taken);
    parser.buffer = rest;
    if (rest.empty() || parser.given == out.size())
      return {Progress::need_more, taken, parser.given};
    const std::size_t given_before = parser.given;
    const std::size_t used = parser.put({rest.data(), rest.size()}, error);
    taken += used;
    chunk_wire_ += used;
    chunk_data_ += parser.given - given_before;
    if (error == beast::error::need_more) return {Progress::need_more, taken, parser.given};
    if (error) return {refuse(refusal_ != 0 ? refusal_ : 400), taken, parser.given};
    // Looked at after each element. Headers come whole, so the answer does not depend on how the
    // bytes have arrived.
    if (is_request && chunk_wire_ > kWireAtMost + kWireFor1Byte * chunk_data_)
      return {refuse(400), taken, parser.given};
  }
  return {Progress::complete, taken, parser.given};
}

Parser::Decoded Parser::decode(std::string_view in, std::span<char> out) {
  return kind_ == Kind::request ? decode_as<true>(in, out) : decode_as<false>(in, out);
}

}  // namespace magpie::http
