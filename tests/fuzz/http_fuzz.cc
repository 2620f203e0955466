// http_fuzz.cc: any bytes as HTTP messages, URLs and paths. libFuzzer calls it; see
// tests/CMakeLists.txt.
//
// What is found must not depend on how the bytes arrive: each input is parsed as a whole, and again
// in pieces whose sizes come from its first byte. If one way finds a message the other has to find
// the same, to every field and byte. (What is no message may be refused by one and not be enough
// yet for the other, which waits for the end of the head.)

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "http/input.h"
#include "http/parser.h"
#include "http/text.h"
#include "http/url.h"

namespace {

using magpie::http::Head;
using magpie::http::Input;
using magpie::http::Parser;
using Progress = Parser::Progress;

constexpr std::size_t kMaxHead = 2000;

// What a message means, as text. Empty: it is none, or not all of it.
std::string meaning_of(std::string_view bytes, Parser::Kind kind, std::size_t step,
                       std::size_t room) {
  Input input;
  Parser parser;
  parser.begin(kind, {kMaxHead, 20});
  std::size_t fed = 0;
  auto feed = [&] {
    std::size_t n = std::min(step, bytes.size() - fed);
    if (n == 0) return false;
    bytes.copy(input.room(n).data(), n, fed);
    input.filled(n);
    fed += n;
    return true;
  };
  Progress progress;
  while ((progress = parser.parse_head(input.bytes())) == Progress::need_more) {
    if (!feed()) return {};
  }
  if (progress == Progress::refused) return {};
  const Head& head = parser.head();
  std::string meaning;
  auto add = [&](std::string_view text) { meaning.append(text).append("\n"); };
  auto number = [&](unsigned long long n) { add(std::to_string(n)); };
  add(head.method.of(input.message()));
  add(head.target.of(input.message()));
  number(static_cast<unsigned>(head.status));
  number(static_cast<unsigned>(head.version));
  number(head.keep_alive * 8u + head.chunked * 4u + head.expects_continue * 2u + head.has_body);
  number(head.content_length.value_or(~0ull));
  for (const Head::Field& field : head.fields) {
    add(field.name.of(input.message()));
    add(field.value.of(input.message()));
    if (!magpie::http::is_field_name(field.name.of(input.message())) ||
        !magpie::http::is_field_value(field.value.of(input.message())))
      std::abort();
  }
  if (head.content_length && head.chunked) std::abort();
  number(parser.head_bytes());
  input.drop(parser.head_bytes());
  if (!head.chunked || !head.has_body) return meaning;

  std::string body, out(room, '\0');
  for (;;) {
    Parser::Decoded decoded = parser.decode(input.bytes(), out);
    if (decoded.taken > input.size() || decoded.given > room) std::abort();
    body.append(out, 0, decoded.given);
    input.drop(decoded.taken);
    if (decoded.progress == Progress::refused) return {};
    if (decoded.progress == Progress::complete) break;
    if (decoded.given == 0 && !feed()) return {};
  }
  number(fed - input.size());
  return meaning + body;
}

void parse_both_ways(std::string_view bytes, Parser::Kind kind, std::size_t step,
                     std::size_t room) {
  std::string whole = meaning_of(bytes, kind, bytes.size() + 1, 4096);
  std::string pieces = meaning_of(bytes, kind, step, room);
  if (whole == pieces) return;
  std::fprintf(stderr, "whole:\n%s\nin pieces of %zu:\n%s\n", whole.c_str(), step, pieces.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t step = data[0] % 16 + 1u, room = data[0] / 16 + 1u;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (auto kind : {Parser::Kind::request, Parser::Kind::response, Parser::Kind::response_to_head})
    parse_both_ways(bytes, kind, step, room);

  std::string decoded;
  (void)magpie::http::append_decoded(decoded, bytes, magpie::http::Plus::is_space);
  try {
    magpie::http::Url url = magpie::http::Url::parse(bytes);
    if (magpie::http::Url::parse(url.to_string()).to_string() != url.to_string()) std::abort();
    (void)url.resolve(bytes);
  } catch (const std::invalid_argument&) {
  }
  try {
    (void)magpie::http::Url::parse("http://x/a/b").resolve(bytes);
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
