// address.h: where a socket is: an IP address and a port, or a path in the file system.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>

#include <magpie/detail/api.h>
#include <magpie/detail/deadline.h>

namespace magpie {
class Context;  // magpie/context.h
}

namespace magpie::net {

// The address of a socket.
class MAGPIE_API Address {
 public:
  // An address of no family. Its to_string() is empty.
  Address() = default;

  // Parses "127.0.0.1:80" or "[::1]:80": numbers only, see resolve() for names. Throws
  // std::invalid_argument.
  static Address parse(std::string_view text);
  // The address of a Unix socket. A path that begins with '@' is a name in the abstract space.
  // Throws std::invalid_argument if the path is empty or too long.
  static Address unix_path(std::string_view path);
  // Takes an address from the system. Throws std::invalid_argument for families other than IPv4,
  // IPv6 and Unix.
  static Address from(const sockaddr* address, socklen_t size);

  std::string to_string() const;  // as parse() takes it; a Unix socket's path
  std::string host() const;       // without the port and brackets
  std::uint16_t port() const;     // 0 for a Unix socket
  Address with_port(std::uint16_t port) const;

  int family() const { return storage_.any.sa_family; }  // AF_INET, AF_INET6, AF_UNIX, AF_UNSPEC
  const sockaddr* data() const { return &storage_.any; }
  socklen_t size() const { return size_; }

  friend bool operator==(const Address& a, const Address& b);

 private:
  union Storage {
    sockaddr any;
    sockaddr_un path;  // the longest
  };
  Storage storage_{};
  socklen_t size_ = 0;
};

MAGPIE_API bool operator==(const Address& a, const Address& b);

}  // namespace magpie::net

namespace magpie::detail {
MAGPIE_API std::vector<net::Address> resolve_until(const std::string& host, DeadlineNs deadline);
MAGPIE_API std::vector<net::Address> resolve_until(const std::string& host, DeadlineNs deadline,
                                                   std::error_code& error);
}  // namespace magpie::detail

namespace magpie::net {

// The addresses of a name, in the system's order of preference, with port 0. Blocks, without
// holding a processor, until the resolver has answered, time is up (errc::timed_out), or the
// context is over (its err()); the last two end the call at once, whatever the system's resolver
// does. Throws std::system_error with the resolver's error, of category resolver_errors(), if there
// are no addresses. With an error_code it does not throw, and returns none after an error. Any
// clock will do.
MAGPIE_API std::vector<Address> resolve(const std::string& host);
MAGPIE_API std::vector<Address> resolve(const std::string& host, std::error_code& error);
MAGPIE_API std::vector<Address> resolve(const std::string& host, const Context& context);
MAGPIE_API std::vector<Address> resolve(const std::string& host, const Context& context,
                                        std::error_code& error);
template <class Rep, class Period>
std::vector<Address> resolve(const std::string& host, std::chrono::duration<Rep, Period> timeout) {
  return detail::resolve_until(host, detail::deadline_after(timeout));
}
template <class Rep, class Period>
std::vector<Address> resolve(const std::string& host, std::chrono::duration<Rep, Period> timeout,
                             std::error_code& error) {
  return detail::resolve_until(host, detail::deadline_after(timeout), error);
}
template <class Clock, class Duration>
std::vector<Address> resolve(const std::string& host,
                             std::chrono::time_point<Clock, Duration> deadline) {
  return detail::resolve_until(host, detail::deadline_at(deadline));
}
template <class Clock, class Duration>
std::vector<Address> resolve(const std::string& host,
                             std::chrono::time_point<Clock, Duration> deadline,
                             std::error_code& error) {
  return detail::resolve_until(host, detail::deadline_at(deadline), error);
}

// The errors of getaddrinfo: EAI_NONAME and the like.
MAGPIE_API const std::error_category& resolver_errors() noexcept;

}  // namespace magpie::net
