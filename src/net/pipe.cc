#include <magpie/net/pipe.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <system_error>

#include "io/descriptor.h"
#include "net/errors.h"
#include "net/socket.h"
#include "net/write_quietly.h"

namespace magpie::net {

using io::Descriptor;

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

PipeStream::PipeStream() noexcept = default;
PipeStream::PipeStream(PipeStream&&) noexcept = default;
PipeStream& PipeStream::operator=(PipeStream&&) noexcept = default;
PipeStream::~PipeStream() = default;

namespace {

// An error number.
[[gnu::noinline]] int prepare_to_adopt(int fd) {
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0) return errno;
  // Does epoll know this kind?
  int probe = epoll_create1(EPOLL_CLOEXEC);
  if (probe < 0) return errno;
  epoll_event nothing{};
  int error = epoll_ctl(probe, EPOLL_CTL_ADD, fd, &nothing) == 0 ? 0 : errno;
  ::close(probe);
  if (error != 0) return error;
  bool blocks = (flags & O_NONBLOCK) == 0;
  if (blocks && fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return errno;
  return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? 0 : errno;
}

}  // namespace

PipeStream PipeStream::adopt(int fd, std::error_code& error) {
  error = code_of(prepare_to_adopt(fd));
  PipeStream stream;
  if (!error) stream.descriptor_ = std::make_unique<Descriptor>(fd, Descriptor::Kind::packets);
  return stream;
}
PipeStream PipeStream::adopt(int fd) {
  std::error_code error;
  PipeStream stream = adopt(fd, error);
  if (error) fail(error, adopting(fd));
  return stream;
}

Stream::Result PipeStream::read_result(std::span<std::byte> into, const Context* context) {
  if (descriptor_ == nullptr) return {0, code_of(EBADF)};
  if (into.empty()) return {};
  ContextLimit limit(context);
  Descriptor::Operation operation(*descriptor_, descriptor_->reader(), "read", limit.get());
  io::Outcome outcome = operation.perform([into](int fd) -> ssize_t {
    ssize_t count = ::read(fd, into.data(), into.size());
    return count < 0 ? -errno : count;
  });
  return {outcome.count, code_of(outcome.error)};
}
std::size_t PipeStream::read(std::span<std::byte> into) {
  Result result = read_result(into, nullptr);
  if (result.error) fail(result.error, "read from a pipe");
  return result.bytes;
}

Stream::Result PipeStream::write_result(Parts parts, const Context* context) {
  if (descriptor_ == nullptr) return {0, code_of(EBADF)};
  ContextLimit limit(context);
  UnwrittenParts left(parts);
  Descriptor::Operation operation(*descriptor_, descriptor_->writer(), "write", limit.get());
  Result all;
  while (!left.empty() && !all.error) {
    io::Outcome some = operation.perform([&](int fd) { return write_quietly(fd, left, kAll); });
    left.drop(some.count);
    all = {all.bytes + some.count, code_of(some.error)};
  }
  return all;
}
void PipeStream::write_parts(Parts parts) {
  if (Result result = write_result(parts, nullptr); result.error)
    fail(result.error, "write to a pipe");
}

std::error_code PipeStream::wait_readable_result(const Context* context) {
  if (descriptor_ == nullptr) return code_of(EBADF);
  ContextLimit limit(context);
  Descriptor::Operation operation(*descriptor_, descriptor_->reader(), "wait_readable",
                                  limit.get());
  io::Outcome outcome = operation.perform([](int fd) -> ssize_t {
    pollfd wanted{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&wanted, 1, 0) == 0 ? -EAGAIN : 0;  // read() reports what is wrong
  });
  return code_of(outcome.error);
}
void PipeStream::wait_readable() {
  if (std::error_code error = wait_readable_result(nullptr)) fail(error, "wait for a pipe");
}

void PipeStream::shutdown_write() {
  if (descriptor_ == nullptr) fail(code_of(EBADF), "shutdown_write of a pipe");
  descriptor_->close();
}
void PipeStream::close() noexcept {
  if (descriptor_ != nullptr) descriptor_->close();
}
void PipeStream::do_set_read_deadline(TimePoint time) noexcept {
  if (descriptor_ != nullptr)
    descriptor_->set_deadline(descriptor_->reader(), detail::deadline_at(time));
}
void PipeStream::do_set_write_deadline(TimePoint time) noexcept {
  if (descriptor_ != nullptr)
    descriptor_->set_deadline(descriptor_->writer(), detail::deadline_at(time));
}
int PipeStream::native_handle() const noexcept {
  return descriptor_ == nullptr ? -1 : descriptor_->fd();
}

namespace {

[[gnu::noinline]] std::error_code open_pipe(int (&ends)[2]) {
  return pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0 ? std::error_code() : code_of(errno);
}

}  // namespace

Pipe pipe(std::error_code& error) {
  int ends[2];
  Pipe made;
  if ((error = open_pipe(ends))) return made;
  auto close_rest = [&] {
    if (made.reader.native_handle() < 0) ::close(ends[0]);
    ::close(ends[1]);
  };
  try {
    made.reader = PipeStream::adopt(ends[0], error);
    if (!error) made.writer = PipeStream::adopt(ends[1], error);
  } catch (...) {
    close_rest();
    throw;
  }
  if (!error) return made;
  close_rest();
  return {};
}
Pipe pipe() {
  std::error_code error;
  Pipe made = pipe(error);
  if (error) fail(error, "make a pipe");
  return made;
}

}  // namespace magpie::net
