#include <magpie/net/pipe.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <system_error>

#include "io/descriptor.h"
#include "net/error_code.h"
#include "net/socket.h"
#include "net/write_quietly.h"

namespace magpie::net {

using io::Descriptor;

namespace {

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

[[noreturn]] void fail_with(std::errc error, const char* what) {
  throw std::system_error(std::make_error_code(error), std::string("magpie: ") + what);
}

}  // namespace

PipeStream::PipeStream() noexcept = default;
PipeStream::PipeStream(PipeStream&&) noexcept = default;
PipeStream& PipeStream::operator=(PipeStream&&) noexcept = default;
PipeStream::~PipeStream() = default;

[[gnu::noinline]] PipeStream PipeStream::adopt(int fd) {
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) throw_errno("adopt a descriptor");
  // Does epoll know this kind?
  int probe = epoll_create1(EPOLL_CLOEXEC);
  if (probe < 0) throw_errno("adopt a descriptor");
  epoll_event nothing{};
  int error = epoll_ctl(probe, EPOLL_CTL_ADD, fd, &nothing) == 0 ? 0 : errno;
  ::close(probe);
  if (error != 0)
    throw std::system_error(error, std::generic_category(), "magpie: adopt a descriptor");
  if ((flags & O_NONBLOCK) == 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
    throw_errno("adopt a descriptor");
  PipeStream stream;
  stream.descriptor_ = std::make_unique<Descriptor>(fd, Descriptor::Kind::packets);
  return stream;
}

Descriptor& PipeStream::descriptor(const char* what) const {
  if (descriptor_ == nullptr) fail_with(std::errc::bad_file_descriptor, what);
  return *descriptor_;
}

std::size_t PipeStream::read(std::span<std::byte> into) {
  Descriptor& mine = descriptor("read");
  if (into.empty()) return 0;
  Descriptor::Turn turn(mine, mine.reader(), "read");
  return turn.perform([into](int fd) -> ssize_t {
    ssize_t count = ::read(fd, into.data(), into.size());
    return count < 0 ? -errno : count;
  });
}

void PipeStream::write_parts(std::span<const std::span<const std::byte>> parts) {
  Descriptor& mine = descriptor("write");
  UnwrittenParts left(parts);
  Descriptor::Turn turn(mine, mine.writer(), "write");
  while (!left.empty()) left.drop(turn.perform([&](int fd) { return left.write_some(fd, kAll); }));
}

void PipeStream::wait_readable() {
  Descriptor& mine = descriptor("wait_readable");
  Descriptor::Turn turn(mine, mine.reader(), "wait_readable");
  turn.perform([](int fd) -> ssize_t {
    pollfd wanted{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&wanted, 1, 0) == 0 ? -EAGAIN : 0;  // read() reports what is wrong
  });
}

void PipeStream::shutdown_write() { descriptor("shutdown_write").close(); }
void PipeStream::close() noexcept {
  if (descriptor_ != nullptr) descriptor_->close();
}
void PipeStream::set_read_deadline_ns(detail::DeadlineNs deadline) noexcept {
  if (descriptor_ != nullptr) descriptor_->set_deadline(descriptor_->reader(), deadline);
}
void PipeStream::set_write_deadline_ns(detail::DeadlineNs deadline) noexcept {
  if (descriptor_ != nullptr) descriptor_->set_deadline(descriptor_->writer(), deadline);
}
int PipeStream::native_handle() const noexcept {
  return descriptor_ == nullptr ? -1 : descriptor_->fd();
}

[[gnu::noinline]] Pipe pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw_errno("pipe");
  Pipe made;
  try {
    made.reader = PipeStream::adopt(ends[0]);
    made.writer = PipeStream::adopt(ends[1]);
  } catch (...) {
    if (made.reader.native_handle() < 0) ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
  return made;
}

PipeStream PipeStream::adopt(int fd, std::error_code& error) {
  return with_error_code(error, [&] { return adopt(fd); });
}
std::size_t PipeStream::read(std::span<std::byte> into, std::error_code& error) {
  return with_error_code(error, [&] { return read(into); });
}
void PipeStream::write(std::span<const std::byte> bytes, std::error_code& error) {
  with_error_code(error, [&] { write(bytes); });
}
Pipe pipe(std::error_code& error) {
  return with_error_code(error, [] { return pipe(); });
}

}  // namespace magpie::net
