#include "net/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "net/errors.h"
#include "net/host_port.h"
#include "net/resolve.h"

namespace magpie::net {

using io::Descriptor;

std::unique_ptr<Descriptor> take_over(int fd, Descriptor::Kind kind) {
  try {
    return std::make_unique<Descriptor>(fd, kind);
  } catch (...) {
    close(fd);
    throw;
  }
}

std::unique_ptr<Descriptor> open_socket(int family, int type, Descriptor::Kind kind,
                                        std::error_code& error) {
  error.clear();
  int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    error = code_of_errno();
    return nullptr;
  }
  return take_over(fd, kind);
}

namespace {

// -1: it has no such option.
int option_of(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

bool is_as_expected(int fd, int domain, Expected expected) {
  int its = option_of(fd, SO_DOMAIN);
  if ((its == AF_INET6 ? AF_INET : its) != domain) return false;
  if (option_of(fd, SO_TYPE) != (expected == Expected::datagrams ? SOCK_DGRAM : SOCK_STREAM))
    return false;
  if (expected == Expected::datagrams) return true;
  bool listens = option_of(fd, SO_ACCEPTCONN) == 1;
  if (expected == Expected::listening) return listens;
  sockaddr_storage peer;
  socklen_t size = sizeof peer;
  return !listens && getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
}

}  // namespace

std::unique_ptr<Descriptor> adopt_socket(int fd, int domain, Expected expected,
                                         Descriptor::Kind kind, std::error_code& error) {
  error.clear();
  int status = fcntl(fd, F_GETFL), flags = fcntl(fd, F_GETFD);
  if (status < 0 || flags < 0) {
    error = code_of_errno();
    return nullptr;
  }
  if (!is_as_expected(fd, domain, expected)) {
    error = code_of(EINVAL);
    return nullptr;
  }
  if (fcntl(fd, F_SETFL, status | O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, flags | FD_CLOEXEC) != 0) {
    error = code_of_errno();
    return nullptr;
  }
  return std::make_unique<Descriptor>(fd, kind);
}

std::string adopting(int fd) { return "adopt descriptor " + std::to_string(fd); }

std::error_code set_option(const Descriptor& descriptor, int level, int option, int value) {
  if (setsockopt(descriptor.fd(), level, option, &value, sizeof value) != 0) return code_of_errno();
  return {};
}

std::error_code keep_alive(const Descriptor& descriptor, std::chrono::seconds idle) {
  constexpr std::chrono::seconds kLongest(32'767);  // of the system
  int seconds = static_cast<int>(std::min(idle, kLongest).count());
  if (seconds <= 0) return set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 0);
  std::error_code error = set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
  if (!error) error = set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, seconds);
  if (!error) error = set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  return error;
}

std::error_code bind_to(const Descriptor& descriptor, const Address& address) {
  if (bind(descriptor.fd(), address.data(), address.size()) != 0) return code_of_errno();
  return {};
}

std::error_code listen_on(const Descriptor& descriptor, int backlog) {
  if (listen(descriptor.fd(), backlog) != 0) return code_of_errno();
  return {};
}

std::error_code connect_to(Descriptor& descriptor, const Address& address, const Context* context) {
  ContextLimit limit(context);
  Descriptor::Operation operation(descriptor, descriptor.writer(), "connect", limit.get());
  bool asked = false;
  io::Outcome outcome = operation.perform([&](int fd) -> ssize_t {
    if (asked) {
      int error = 0;
      socklen_t size = sizeof error;
      if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return -errno;
      if (error != 0) return -error;
      // No error, and maybe no answer either: the first event is often that it is not connected
      // yet.
      sockaddr_storage peer;
      socklen_t length = sizeof peer;
      if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0) return 0;
      return errno == ENOTCONN ? -EAGAIN : -errno;
    }
    asked = true;
    if (connect(fd, address.data(), address.size()) == 0) return 0;
    // A Unix socket says EAGAIN when the listener's line is full; there will be no event.
    if (errno == EAGAIN) return -ECONNREFUSED;
    return errno == EINPROGRESS || errno == EINTR ? -EAGAIN : -errno;
  });
  return code_of(outcome.error);
}

namespace {

Address address_from(int (*ask)(int, sockaddr*, socklen_t*), const Descriptor* descriptor,
                     std::error_code& error) {
  error.clear();
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (ask(descriptor == nullptr ? -1 : descriptor->fd(), address, &size) != 0) {
    error = code_of_errno();
    return {};
  }
  return Address::from(address, size);
}

}  // namespace

Address local_address_of(const Descriptor* descriptor, std::error_code& error) {
  return address_from(
      [](int fd, sockaddr* address, socklen_t* size) { return getsockname(fd, address, size); },
      descriptor, error);
}

Address remote_address_of(const Descriptor* descriptor, std::error_code& error) {
  return address_from(
      [](int fd, sockaddr* address, socklen_t* size) { return getpeername(fd, address, size); },
      descriptor, error);
}

Address address_to_bind(std::string_view host_and_port, const Context* context,
                        std::error_code& error) {
  error.clear();
  HostPort parts = split_host_port(host_and_port);
  if (!parts.host.empty()) {
    std::vector<Address> found = look_up(parts.host, detail::kNoDeadline, context, error);
    return error ? Address() : found.front().with_port(parts.port);
  }
  // Both families, where there is IPv6.
  int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return Address::parse("0.0.0.0:0").with_port(parts.port);
  close(probe);
  return Address::parse("[::]:0").with_port(parts.port);
}

std::string binding(std::string_view where) { return "bind to " + std::string(where); }
std::string connecting(std::string_view where) { return "connect to " + std::string(where); }

}  // namespace magpie::net
