// stream.cc: connected and listening sockets, whatever their family.
#include <magpie/net/stream.h>

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include <magpie/net/tcp.h>
#include <magpie/time.h>

#include "base/clock.h"
#include "io/descriptor.h"
#include "net/socket.h"

namespace magpie::net {

using io::Descriptor;

EndOfStream::EndOfStream(std::size_t wanted, std::size_t got)
    : std::runtime_error("magpie: the stream ended after " + std::to_string(got) + " of " +
                         std::to_string(wanted) + " bytes") {}

void Stream::read_exact(std::span<std::byte> into) {
  std::size_t wanted = into.size();
  while (!into.empty()) {
    std::size_t count = read(into);
    if (count == 0) throw EndOfStream(wanted, wanted - into.size());
    into = into.subspan(count);
  }
}

// ---- connected

SocketStream::SocketStream(std::unique_ptr<Descriptor> descriptor) noexcept
    : descriptor_(std::move(descriptor)) {}
SocketStream::SocketStream(SocketStream&&) noexcept = default;
SocketStream& SocketStream::operator=(SocketStream&&) noexcept = default;
SocketStream::~SocketStream() = default;

std::size_t SocketStream::read(std::span<std::byte> into) {
  if (into.empty()) return 0;
  Descriptor::Turn turn(*descriptor_, descriptor_->reader(), "read");
  return turn.perform(
      [into](int fd) -> ssize_t {
        ssize_t count = recv(fd, into.data(), into.size(), 0);
        return count < 0 ? -errno : count;
      },
      into.size());
}

namespace {

// The parts that are not written yet, a system call's worth of them at a time.
class Remaining {
 public:
  explicit Remaining(std::span<const std::span<const std::byte>> parts) : parts_(parts) {
    skip_empty();
  }
  bool empty() const { return parts_.empty(); }

  ssize_t send_some(int fd) const {
    if (parts_.size() == 1) {
      std::span<const std::byte> first = parts_[0].subspan(done_);
      ssize_t count = send(fd, first.data(), first.size(), MSG_NOSIGNAL);
      return count < 0 ? -errno : count;
    }
    constexpr std::size_t kMost = 16;
    iovec vectors[kMost];
    std::size_t used = std::min(parts_.size(), kMost);
    for (std::size_t i = 0; i < used; ++i) {
      std::span<const std::byte> part = i == 0 ? parts_[0].subspan(done_) : parts_[i];
      vectors[i] = {const_cast<std::byte*>(part.data()), part.size()};
    }
    msghdr message{};
    message.msg_iov = vectors;
    message.msg_iovlen = used;
    ssize_t count = sendmsg(fd, &message, MSG_NOSIGNAL);
    return count < 0 ? -errno : count;
  }

  void drop(std::size_t count) {
    done_ += count;
    skip_empty();
  }

 private:
  void skip_empty() {
    while (!parts_.empty() && done_ >= parts_[0].size()) {
      done_ -= parts_[0].size();
      parts_ = parts_.subspan(1);
    }
  }

  std::span<const std::span<const std::byte>> parts_;
  std::size_t done_ = 0;  // of the first part
};

}  // namespace

void SocketStream::write_parts(std::span<const std::span<const std::byte>> parts) {
  Remaining remaining(parts);
  Descriptor::Turn turn(*descriptor_, descriptor_->writer(), "write");
  while (!remaining.empty())
    remaining.drop(turn.perform([&](int fd) { return remaining.send_some(fd); }));
}

void SocketStream::wait_readable() {
  Descriptor::Turn turn(*descriptor_, descriptor_->reader(), "wait_readable");
  turn.perform([](int fd) -> ssize_t {
    std::byte first;
    ssize_t count = recv(fd, &first, 1, MSG_PEEK);
    if (count >= 0) return 0;
    return errno == EAGAIN || errno == EINTR ? -errno : 0;  // read() reports what is wrong
  });
}

void SocketStream::shutdown_write() {
  if (descriptor_->is_closed() || shutdown(descriptor_->fd(), SHUT_WR) != 0)
    throw_errno("shutdown_write");
}

void SocketStream::close() noexcept {
  if (descriptor_ != nullptr) descriptor_->close();
}
void SocketStream::set_read_deadline_ns(detail::DeadlineNs deadline) noexcept {
  descriptor_->set_deadline(descriptor_->reader(), deadline);
}
void SocketStream::set_write_deadline_ns(detail::DeadlineNs deadline) noexcept {
  descriptor_->set_deadline(descriptor_->writer(), deadline);
}

Address SocketStream::local_address() const { return local_address_of(*descriptor_); }
Address SocketStream::remote_address() const { return remote_address_of(*descriptor_); }
int SocketStream::native_handle() const noexcept { return descriptor_->fd(); }

// ---- listening

Listener::Listener(std::unique_ptr<Descriptor> descriptor) noexcept
    : descriptor_(std::move(descriptor)) {}
Listener::Listener(Listener&&) noexcept = default;
Listener& Listener::operator=(Listener&&) noexcept = default;
Listener::~Listener() = default;

void Listener::listen() { listen_on(*descriptor_); }
Address Listener::local_address() const { return local_address_of(*descriptor_); }
void Listener::close() noexcept {
  if (descriptor_ != nullptr) descriptor_->close();
}
void Listener::set_deadline(Stream::TimePoint time) noexcept {
  detail::DeadlineNs ns =
      time == Stream::TimePoint::max() ? detail::kNoDeadline : detail::deadline_at(time);
  descriptor_->set_deadline(descriptor_->reader(), ns);
}
int Listener::native_handle() const noexcept { return descriptor_->fd(); }

namespace {

// What went wrong with one peer before it was accepted. The next may be well.
bool is_of_the_peer(int error) {
  switch (error) {
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case EPERM:  // a firewall
      return true;
    default:
      return false;
  }
}

}  // namespace

std::unique_ptr<Descriptor> Listener::accept_descriptor() {
  Descriptor::Turn turn(*descriptor_, descriptor_->reader(), "accept");
  std::size_t fd = turn.perform([](int listener) -> ssize_t {
    for (;;) {
      int accepted = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (accepted >= 0) return accepted;
      if (!is_of_the_peer(errno)) return -errno;
    }
  });
  return std::make_unique<Descriptor>(static_cast<int>(fd), descriptor_->kind());
}

}  // namespace magpie::net
