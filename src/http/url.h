// url.h: http://host:port/path?query, taken apart.
#pragma once

#include <string>
#include <string_view>

namespace magpie::http {

struct Url {
  std::string scheme;  // "http" or "https"
  std::string host;    // a name or an address; IPv6 in brackets
  std::string port;
  std::string target;  // path and query, begins with /

  // Throws std::invalid_argument for anything else, and for bytes that may not stand in a request.
  static Url parse(std::string_view text);
  // What a Location header means, seen from here. Throws std::invalid_argument.
  Url resolve(std::string_view location) const;

  std::string host_and_port() const { return host + ":" + port; }
  // Without the port that the scheme has anyway.
  std::string authority() const;
  std::string to_string() const { return scheme + "://" + authority() + target; }
  bool same_origin(const Url& other) const {
    return scheme == other.scheme && host == other.host && port == other.port;
  }
};

}  // namespace magpie::http
