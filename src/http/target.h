// target.h: what a request's first line asks for, taken apart (RFC 9112, 3.2).
#pragma once

#include <optional>
#include <string_view>

namespace magpie::http {

struct Target {
  std::string_view authority;  // "host:port" of an absolute target; empty: there is none
  std::string_view path;       // begins with /; "*" for OPTIONS; empty: "/" of an absolute target
  std::string_view query;      // with its ?; empty: there is none
};

// "/path?query", "*", or "http://host/path?query" as for a proxy, with https too. None for anything
// else.
std::optional<Target> parse_target(std::string_view text) noexcept;

// A name, an IPv4 address or an IPv6 address in brackets, and maybe a port. No user, no path.
bool is_authority(std::string_view text) noexcept;

// Whether a path that was decoded stays where its text says, if it is used as a path below some
// directory: no "." or "..", and no empty segment but the last.
bool stays_below(std::string_view decoded_segment) noexcept;

}  // namespace magpie::http
