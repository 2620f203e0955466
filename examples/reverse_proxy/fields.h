// fields.h: which header fields a proxy passes on.
#pragma once

#include <magpie/http.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace proxy {

inline bool same_name(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

// Fields that are between two neighbours and not passed on: those of HTTP itself, and what
// `Connection` names.
inline bool is_for_one_hop(std::string_view name, const magpie::http::Headers& headers) {
  for (const char* mine : {"connection", "keep-alive", "transfer-encoding", "content-length", "te",
                           "trailer", "upgrade", "proxy-authenticate", "proxy-authorization",
                           "proxy-connection", "expect", "host"}) {
    if (same_name(name, mine)) return true;
  }
  for (const auto& [field, value] : headers) {
    if (!same_name(field, "connection")) continue;
    for (std::string_view rest = value; !rest.empty();) {
      std::string_view one = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(one.size() + 1, rest.size()));
      while (one.starts_with(' ') || one.starts_with('\t')) one.remove_prefix(1);
      while (one.ends_with(' ') || one.ends_with('\t')) one.remove_suffix(1);
      if (same_name(name, one)) return true;
    }
  }
  return false;
}

// Fields by which servers behind are told who asks. Clients may not set them: they would be
// believed. Nor others that look the same to a server which takes - and _ for one.
inline bool tells_of_client(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  constexpr std::string_view kPrefix = "x-forwarded-";
  return same_name(name, "forwarded") || same_name(name, "x-real-ip") ||
         same_name(std::string_view(name).substr(0, kPrefix.size()), kPrefix);
}

// "127.0.0.1:1234" or "[::1]:1234" without the port.
inline std::string host_of(const std::string& address) {
  return address.substr(0, address.rfind(':'));
}

}  // namespace proxy
