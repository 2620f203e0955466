// url_fuzz.cc: any bytes as a URL and as where a redirect leads. libFuzzer calls it; see
// tests/CMakeLists.txt.
//
// A URL that is accepted can go into a request as it is: no byte of it ends a line, a header or the
// host; and it means the same when it is written and read again. What a Location means, seen from a
// good URL, keeps to the same rules.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "http/url.h"

namespace {

using magpie::http::Url;

void fail(const char* why, std::string_view text) {
  std::fprintf(stderr, "%s: \"%.*s\"\n", why, static_cast<int>(text.size()), text.data());
  std::abort();
}

void check(const Url& url, std::string_view text) {
  auto plain = [](std::string_view part) {
    return std::all_of(part.begin(), part.end(),
                       [](char c) { return static_cast<unsigned char>(c) > ' ' && c != 0x7f; });
  };
  if (url.scheme != "http" && url.scheme != "https") fail("a scheme", text);
  if (url.host.empty() || url.host.find_first_of("/?#@\\") != std::string::npos || !plain(url.host))
    fail("a host", text);
  if (url.port.empty() || url.port.find_first_not_of("0123456789") != std::string::npos ||
      std::stoi(url.port) > 65535)
    fail("a port", text);
  if (!url.target.starts_with('/') || url.target.find('#') != std::string::npos ||
      !plain(url.target))
    fail("a target", text);
  Url again = Url::parse(url.to_string());
  if (!again.same_origin(url) || again.target != url.target) fail("another URL", text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    check(Url::parse(text), text);
  } catch (const std::invalid_argument&) {
  }
  static const Url here = Url::parse("https://here.test:444/a/b/c?query");
  try {
    Url there = here.resolve(text);
    check(there, text);
    const bool names_a_host =
        text.find("//") != std::string_view::npos && text.find("//") <= text.find_first_of("?#");
    if (!names_a_host && !there.same_origin(here)) fail("a path leads elsewhere", text);
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
