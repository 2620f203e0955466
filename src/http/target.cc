#include "http/target.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstddef>

#include "http/text.h"

namespace magpie::http {

namespace {

bool is_port_or_none(std::string_view text) {
  if (text.size() > 5 || !std::all_of(text.begin(), text.end(), is_digit)) return false;
  unsigned number = 0;
  for (char c : text) number = number * 10 + static_cast<unsigned>(c - '0');
  return number <= 65535;  // none is the scheme's own
}

bool is_label(std::string_view text) {
  return !text.empty() && text.front() != '-' && text.back() != '-' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
                  c == '_';
         });
}

// Names of machines. RFC 3986 allows more, which no machine is called by. A dot may end one: it is
// that of the root.
bool is_name(std::string_view text) {
  if (text.ends_with('.')) text.remove_suffix(1);
  for (;;) {
    std::size_t dot = text.find('.');
    if (!is_label(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool is_address_in_brackets(std::string_view text) {
  if (text.size() < 4 || text.front() != '[' || text.back() != ']') return false;
  text = text.substr(1, text.size() - 2);
  char ended[INET6_ADDRSTRLEN] = {};
  if (text.size() >= sizeof ended || text.find('\0') != std::string_view::npos) return false;
  text.copy(ended, sizeof ended - 1);
  in6_addr any;
  return ::inet_pton(AF_INET6, ended, &any) == 1;
}

}  // namespace

bool is_authority(std::string_view text) noexcept {
  std::size_t host_end = text.size();
  if (text.starts_with('[')) {
    std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) return false;
    host_end = bracket + 1;
  } else {
    host_end = std::min(text.find(':'), text.size());
  }
  std::string_view host = text.substr(0, host_end), rest = text.substr(host_end);
  if (!rest.empty() && (rest.front() != ':' || !is_port_or_none(rest.substr(1)))) return false;
  return host.starts_with('[') ? is_address_in_brackets(host) : is_name(host);
}

std::optional<Target> parse_target(std::string_view text) noexcept {
  if (text.find('#') != std::string_view::npos) return std::nullopt;
  Target target;
  if (!text.starts_with('/') && text != "*") {
    constexpr std::string_view kPlain = "http://", kSecure = "https://";
    if (same_name(text.substr(0, kPlain.size()), kPlain)) {
      text.remove_prefix(kPlain.size());
    } else if (same_name(text.substr(0, kSecure.size()), kSecure)) {
      text.remove_prefix(kSecure.size());
    } else {
      return std::nullopt;
    }
    std::size_t end = std::min(text.find_first_of("/?"), text.size());
    target.authority = text.substr(0, end);
    if (!is_authority(target.authority)) return std::nullopt;
    text.remove_prefix(end);
  }
  std::size_t mark = std::min(text.find('?'), text.size());
  target.path = text.substr(0, mark);
  target.query = text.substr(mark);
  return target;
}

bool stays_below(std::string_view decoded_segment) noexcept {
  if (decoded_segment.find('/') == std::string_view::npos)
    return decoded_segment != "." && decoded_segment != "..";
  // An escaped slash: code that takes the text for a path sees several segments.
  while (true) {
    std::size_t slash = std::min(decoded_segment.find('/'), decoded_segment.size());
    std::string_view one = decoded_segment.substr(0, slash);
    if (one.empty() || one == "." || one == "..") return false;
    if (slash == decoded_segment.size()) return true;
    decoded_segment.remove_prefix(slash + 1);
  }
}

}  // namespace magpie::http
