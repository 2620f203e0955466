#include "net/socket.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "net/host_port.h"

namespace magpie::net {

void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), std::string("magpie: ") + what);
}

std::unique_ptr<io::Descriptor> open_socket(int family, int type, io::Descriptor::Kind kind) {
  int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) throw_errno("socket");
  try {
    return std::make_unique<io::Descriptor>(fd, kind);
  } catch (...) {
    close(fd);
    throw;
  }
}

void set_option(const io::Descriptor& descriptor, int level, int option, int value) {
  if (setsockopt(descriptor.fd(), level, option, &value, sizeof value) != 0)
    throw_errno("setsockopt");
}

void bind_to(const io::Descriptor& descriptor, const Address& address) {
  if (bind(descriptor.fd(), address.data(), address.size()) == 0) return;
  int error = errno;
  throw std::system_error(error, std::generic_category(), "magpie: bind " + address.to_string());
}

void listen_on(const io::Descriptor& descriptor) {
  constexpr int kMost = 65'535;  // the system has its own limit, which is lower
  if (listen(descriptor.fd(), kMost) != 0) throw_errno("listen");
}

void connect_to(io::Descriptor& descriptor, const Address& address) {
  io::Descriptor::Turn turn(descriptor, descriptor.writer(), "connect");
  bool asked = false;
  turn.perform([&](int fd) -> ssize_t {
    if (asked) {
      int error = 0;
      socklen_t size = sizeof error;
      if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return -errno;
      if (error != 0) return -error;
      // No error, and maybe no answer either: the first event is often that it is not connected yet.
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
}

namespace {

Address address_from(int (*ask)(int, sockaddr*, socklen_t*), const io::Descriptor& descriptor,
                     const char* what) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (ask(descriptor.fd(), address, &size) != 0) throw_errno(what);
  return Address::from(address, size);
}

}  // namespace

Address local_address_of(const io::Descriptor& descriptor) {
  return address_from(
      [](int fd, sockaddr* address, socklen_t* size) { return getsockname(fd, address, size); },
      descriptor, "getsockname");
}

Address remote_address_of(const io::Descriptor& descriptor) {
  return address_from(
      [](int fd, sockaddr* address, socklen_t* size) { return getpeername(fd, address, size); },
      descriptor, "getpeername");
}

Address address_to_bind(std::string_view host_and_port) {
  HostPort parts = split_host_port(host_and_port);
  if (!parts.host.empty()) return resolve(parts.host).front().with_port(parts.port);
  // Both families, where there is IPv6.
  int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return Address::parse("0.0.0.0:0").with_port(parts.port);
  close(probe);
  return Address::parse("[::]:0").with_port(parts.port);
}

}  // namespace magpie::net
