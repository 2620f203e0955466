#include <magpie/net/address.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>

#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>

#include <magpie/blocking.h>

#include "net/host_port.h"

namespace magpie::net {
namespace {

const sockaddr_in& v4(const sockaddr* address) {
  return *reinterpret_cast<const sockaddr_in*>(address);
}
const sockaddr_in6& v6(const sockaddr* address) {
  return *reinterpret_cast<const sockaddr_in6*>(address);
}

// What getaddrinfo says, as an error of its own kind.
class ResolverErrors : public std::error_category {
 public:
  const char* name() const noexcept override { return "resolver"; }
  std::string message(int code) const override { return gai_strerror(code); }
};

const std::error_category& resolver_errors() {
  static const ResolverErrors category;
  return category;
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Not inlined, as all that looks at errno: a compiler may keep its address over a call into the runtime, after which the
// thread may be another.
[[gnu::noinline]] int ask_resolver(const char* host, const addrinfo& hints, addrinfo*& first,
                                   int& system_error) {
  int result = getaddrinfo(host, nullptr, &hints, &first);
  system_error = errno;
  return result;
}

// Throws std::system_error.
AddressList look_up(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* first = nullptr;
  int system_error = 0;
  int code = blocking([&] { return ask_resolver(host.c_str(), hints, first, system_error); });
  if (code == EAI_SYSTEM)
    throw std::system_error(system_error, std::generic_category(), "magpie: resolve " + host);
  if (code != 0) throw std::system_error(code, resolver_errors(), "magpie: resolve " + host);
  return {first, &freeaddrinfo};
}

std::vector<Address> addresses_of(const addrinfo* first) {
  std::vector<Address> all;
  for (const addrinfo* at = first; at != nullptr; at = at->ai_next) {
    if (at->ai_family == AF_INET || at->ai_family == AF_INET6)
      all.push_back(Address::from(at->ai_addr, at->ai_addrlen));
  }
  return all;
}

// A number without a name server; empty: it is none. With a scope, as in fe80::1%eth0.
std::vector<Address> numeric(const std::string& host) {
  in6_addr any;
  bool is_v4 = inet_pton(AF_INET, host.c_str(), &any) == 1;
  bool is_v6 = host.find(':') != std::string::npos;
  if (!is_v4 && !is_v6) return {};
  try {
    return addresses_of(look_up(host, AI_NUMERICHOST).get());
  } catch (const std::system_error&) {
    return {};
  }
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
  std::vector<Address> found = numeric(parts.host);
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
  at.sun_path[path.size()] = '\0';  // it is part of a path's address, and nothing has written it yet
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

std::vector<Address> resolve(const std::string& host) {
  if (std::vector<Address> found = numeric(host); !found.empty()) return found;
  std::vector<Address> found = addresses_of(look_up(host, AI_ADDRCONFIG).get());
  if (found.empty())
    throw std::system_error(EAI_NONAME, resolver_errors(), "magpie: resolve " + host);
  return found;
}

}  // namespace magpie::net
