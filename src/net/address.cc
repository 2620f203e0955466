#include <magpie/net/address.h>

#include <arpa/inet.h>
#include <net/if.h>

#include <charconv>
#include <cstddef>
#include <cstring>
#include <stdexcept>

#include "net/host_port.h"
#include "net/resolve.h"

namespace magpie::net {
namespace {

const sockaddr_in& v4(const sockaddr* address) {
  return *reinterpret_cast<const sockaddr_in*>(address);
}
const sockaddr_in6& v6(const sockaddr* address) {
  return *reinterpret_cast<const sockaddr_in6*>(address);
}

}  // namespace

HostPort split_host_port(std::string_view text) {
  auto bad = [&](const char* why) {
    return std::invalid_argument("magpie: \"" + std::string(text) + "\": " + why +
                                 "; an address looks like \"host:80\" or \"[::1]:80\"");
  };
  std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) throw bad("no port");
  std::string_view host = text.substr(0, colon), digits = text.substr(colon + 1);
  if (!host.empty() && host.front() == '[') {
    if (host.back() != ']') throw bad("no closing bracket");
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    throw bad("an IPv6 address needs brackets");
  }
  if (host.find('\0') != std::string_view::npos) throw bad("a zero byte");
  unsigned port = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() ||
      port > 65535)
    throw bad("the port is not a number from 0 to 65535");
  return {std::string(host), static_cast<std::uint16_t>(port)};
}

Address Address::parse(std::string_view text) {
  HostPort parts = split_host_port(text);
  std::vector<Address> found = addresses_of_number(parts.host);
  if (found.empty()) {
    throw std::invalid_argument("magpie: \"" + std::string(text) +
                                "\" is not a numeric address; use resolve() for names");
  }
  return found.front().with_port(parts.port);
}

Address Address::unix_path(std::string_view path) {
  Address address;
  sockaddr_un& at = address.storage_.path;
  if (path.empty() || path.size() >= sizeof at.sun_path) {
    throw std::invalid_argument("magpie: the path of a Unix socket has 1 to " +
                                std::to_string(sizeof at.sun_path - 1) + " bytes, not " +
                                std::to_string(path.size()));
  }
  bool is_abstract = path.front() == '@';
  if (!is_abstract && path.find('\0') != std::string_view::npos)
    throw std::invalid_argument("magpie: the path of a Unix socket has a zero byte");
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path, path.data(), path.size());
  // Part of a path's address, and nothing has written it yet.
  at.sun_path[path.size()] = '\0';
  if (is_abstract) at.sun_path[0] = '\0';
  address.size_ =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + (is_abstract ? 0 : 1));
  return address;
}

Address Address::from(const sockaddr* address, socklen_t size) {
  Address result;
  bool known = size >= sizeof(sa_family_t) && size <= sizeof result.storage_ &&
               (address->sa_family == AF_INET || address->sa_family == AF_INET6 ||
                address->sa_family == AF_UNIX);
  if (!known) throw std::invalid_argument("magpie: an address that is neither IP nor Unix");
  std::memcpy(&result.storage_, address, size);
  result.size_ = size;
  return result;
}

std::string Address::host() const {
  char text[INET6_ADDRSTRLEN];
  switch (family()) {
    case AF_INET:
      return inet_ntop(AF_INET, &v4(data()).sin_addr, text, sizeof text);
    case AF_INET6: {
      std::string host = inet_ntop(AF_INET6, &v6(data()).sin6_addr, text, sizeof text);
      char name[IF_NAMESIZE];
      unsigned scope = v6(data()).sin6_scope_id;
      if (scope != 0)
        host += '%' + (if_indextoname(scope, name) != nullptr ? std::string(name)
                                                              : std::to_string(scope));
      return host;
    }
    case AF_UNIX: {
      std::size_t length = size_ - offsetof(sockaddr_un, sun_path);
      const char* path = storage_.path.sun_path;
      if (length == 0) return {};  // a socket without a name
      if (path[0] == '\0') return '@' + std::string(path + 1, length - 1);
      return std::string(path, strnlen(path, length));
    }
    default:
      return {};
  }
}

std::uint16_t Address::port() const {
  if (family() == AF_INET) return ntohs(v4(data()).sin_port);
  if (family() == AF_INET6) return ntohs(v6(data()).sin6_port);
  return 0;
}

Address Address::with_port(std::uint16_t port) const {
  Address other = *this;
  if (family() == AF_INET) reinterpret_cast<sockaddr_in&>(other.storage_).sin_port = htons(port);
  if (family() == AF_INET6) reinterpret_cast<sockaddr_in6&>(other.storage_).sin6_port = htons(port);
  return other;
}

std::string Address::to_string() const {
  if (family() == AF_INET) return host() + ':' + std::to_string(port());
  if (family() == AF_INET6) return '[' + host() + "]:" + std::to_string(port());
  return host();
}

bool operator==(const Address& a, const Address& b) {
  return a.size_ == b.size_ && std::memcmp(&a.storage_, &b.storage_, a.size_) == 0;
}

}  // namespace magpie::net
