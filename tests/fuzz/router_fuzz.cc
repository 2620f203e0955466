// router_fuzz.cc: any lines as patterns of a router, the last one as what a request asks for.
// libFuzzer calls it; see tests/CMakeLists.txt.
//
// A pattern that is accepted can match. The router finds a route exactly if going through all
// patterns, one by one, finds some; and what it takes for parameters are segments of the path, in
// their order. A target that is accepted is the same when it is put together again. A query's names
// and values are decoded in two ways that agree.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "http/router.h"
#include "http/target.h"
#include "http/text.h"

namespace {

using magpie::http::append_decoded;
using magpie::http::decodes_to;
using magpie::http::is_authority;
using magpie::http::Match;
using magpie::http::Router;
using Texts = std::vector<std::string_view>;

void fail(const char* why, std::string_view text) {
  std::fprintf(stderr, "%s: \"%.*s\"\n", why, static_cast<int>(text.size()), text.data());
  std::abort();
}

Texts split(std::string_view text, char at) {
  Texts parts;
  for (;;) {
    std::size_t end = std::min(text.find(at), text.size());
    parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

struct Pattern {
  std::string text;
  std::string_view method() const {
    return text.starts_with('/') ? std::string_view() : split(text, ' ')[0];
  }
  Texts segments() const {
    Texts all = split(std::string_view(text).substr(text.find('/')), '/');
    all.erase(all.begin());  // what stands before the first slash
    return all;
  }
};

std::string decoded(std::string_view text) {
  std::string result;
  if (!append_decoded(result, text, magpie::http::Plus::stays)) fail("an escape", text);
  return result;
}

bool matches(const Pattern& pattern, std::string_view method, const Texts& path) {
  if (!pattern.method().empty() && pattern.method() != method &&
      !(method == "HEAD" && pattern.method() == "GET"))
    return false;
  Texts wanted = pattern.segments();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    bool is_parameter = wanted[i].starts_with('{');
    if (is_parameter && wanted[i].ends_with("...}")) return true;
    if (i == path.size()) return false;
    if (is_parameter ? path[i].empty() : decoded(wanted[i]) != path[i]) return false;
  }
  return wanted.size() == path.size();
}

void check_route(const Router& router, const std::vector<Pattern>& patterns,
                 std::string_view method, const Texts& path) {
  Router::Values values;
  Match match = router.match(method, path, values);
  bool any = std::any_of(patterns.begin(), patterns.end(),
                         [&](const Pattern& each) { return matches(each, method, path); });
  if (any != (match.route != nullptr)) fail(any ? "not found" : "found", method);
  if (match.route == nullptr) return;
  if (!matches({match.route->pattern}, method, path)) fail("another route", match.route->pattern);
  if (values.segments.size() != match.route->names.size()) fail("parameters", match.route->pattern);
  if (!std::is_sorted(values.segments.begin(), values.segments.end()))
    fail("the order of parameters", match.route->pattern);
  for (std::uint32_t at : values.segments) {
    if (at > path.size() || (at == path.size() && !values.rest))
      fail("a parameter that is no segment", match.route->pattern);
  }
}

// A path that the pattern is for.
void check_that_it_can_match(const Router& router, const std::vector<Pattern>& patterns,
                             const Pattern& pattern) {
  std::vector<std::string> texts;
  for (std::string_view segment : pattern.segments())
    texts.push_back(segment.starts_with('{') ? "value" : decoded(segment));
  Texts path(texts.begin(), texts.end());
  std::string_view method = pattern.method().empty() ? "GET" : pattern.method();
  if (!matches(pattern, method, path)) fail("would never match", pattern.text);
  check_route(router, patterns, method, path);
}

void check_target(std::string_view text) {
  auto target = magpie::http::parse_target(text);
  if (!target) return;
  std::string again(target->authority);
  again.append(target->path).append(target->query);
  if (!text.ends_with(again)) fail("another target", text);
  if (target->authority.empty() ? again != text : !is_authority(target->authority))
    fail("an authority", text);
  if (!target->path.empty() && target->path != "*" && !target->path.starts_with('/'))
    fail("a path", text);
}

void check_query(std::string_view text) {
  for (std::string_view pair : split(text, '&')) {
    for (std::string_view each : split(pair, '=')) {
      std::string plain;
      bool well = append_decoded(plain, each, magpie::http::Plus::is_space);
      if (well && !decodes_to(each, plain)) fail("decoded in two ways", each);
      if (well && plain.size() > each.size()) fail("longer than it was", each);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Texts lines = split({reinterpret_cast<const char*>(data), size}, '\n');
  const std::string_view asked = lines.back();
  lines.pop_back();
  Router router;
  std::vector<Pattern> patterns;
  for (std::string_view line : lines) {
    try {
      router.add(
          line, [](auto&, auto&) {}, std::nullopt);
      patterns.push_back({std::string(line)});
    } catch (const std::invalid_argument&) {
    }
  }
  for (const Pattern& pattern : patterns) check_that_it_can_match(router, patterns, pattern);
  Texts path = split(asked, '/');
  path.erase(path.begin());
  for (std::string_view method : {"GET", "HEAD", "POST"})
    check_route(router, patterns, method, path);
  check_target(asked);
  check_query(asked);
  return 0;
}
