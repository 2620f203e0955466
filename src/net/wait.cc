#include <magpie/net/wait.h>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "io/descriptor.h"
#include "net/socket.h"

namespace magpie::net {
namespace {

using io::Descriptor;

// Without blocking. Throws std::system_error: bad_file_descriptor.
bool is_ready(int fd, short events) {
  pollfd wanted{.fd = fd, .events = events, .revents = 0};
  if (::poll(&wanted, 1, 0) <= 0) return false;
  if ((wanted.revents & POLLNVAL) != 0)
    throw std::system_error(EBADF, std::generic_category(), "magpie: wait for a descriptor");
  return true;
}

// Another number for the same file, so that several may wait for it, each with a registration of its own.
class Duplicate {
 public:
  explicit Duplicate(int fd) : fd_(fcntl(fd, F_DUPFD_CLOEXEC, 0)) {
    if (fd_ < 0) throw_errno("wait for a descriptor");
  }
  ~Duplicate() { close(fd_); }
  Duplicate(const Duplicate&) = delete;
  Duplicate& operator=(const Duplicate&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

bool wait_until(int fd, short events, Descriptor::Side& (Descriptor::*side)(),
                detail::DeadlineNs deadline) {
  if (is_ready(fd, events)) return true;
  Duplicate mine(fd);
  Descriptor descriptor(mine.fd(), Descriptor::Kind::borrowed);
  descriptor.set_deadline((descriptor.*side)(), deadline);
  Descriptor::Turn turn(descriptor, (descriptor.*side)(), "wait for a descriptor");
  try {
    turn.perform([&](int number) -> ssize_t { return is_ready(number, events) ? 0 : -EAGAIN; });
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::timed_out) return false;
    throw;
  }
  return true;
}

}  // namespace

bool wait_readable_until(int fd, detail::DeadlineNs deadline) {
  return wait_until(fd, POLLIN, &Descriptor::reader, deadline);
}
bool wait_writable_until(int fd, detail::DeadlineNs deadline) {
  return wait_until(fd, POLLOUT, &Descriptor::writer, deadline);
}

}  // namespace magpie::net
