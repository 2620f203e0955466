// socket_stream.cc: connected and listening sockets, whatever their family.
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include <magpie/net/tcp.h>

#include "io/descriptor.h"
#include "net/errors.h"
#include "net/socket.h"
#include "net/unwritten_parts.h"

namespace magpie::net {

using io::Descriptor;
using io::Outcome;

// ---- connected

SocketStream::SocketStream() noexcept = default;
SocketStream::SocketStream(std::unique_ptr<Descriptor> descriptor) noexcept
    : descriptor_(std::move(descriptor)) {}
SocketStream::SocketStream(std::unique_ptr<Descriptor> descriptor, const Address& peer) noexcept
    : descriptor_(std::move(descriptor)) {
  if (peer.size() <= sizeof peer_) std::memcpy(&peer_, peer.data(), peer.size());
}
SocketStream::SocketStream(SocketStream&&) noexcept = default;
SocketStream& SocketStream::operator=(SocketStream&&) noexcept = default;
SocketStream::~SocketStream() = default;

namespace {

Outcome read_some(Descriptor* descriptor, std::span<std::byte> into, const io::Limit* limit) {
  if (into.empty()) return {};
  if (descriptor == nullptr) return {0, EBADF};
  Descriptor::Operation operation(*descriptor, descriptor->reader(), "read", limit);
  return operation.perform(
      [into](int fd) -> ssize_t {
        ssize_t count = recv(fd, into.data(), into.size(), 0);
        return count < 0 ? -errno : count;
      },
      into.size());
}

ssize_t send_some(int fd, const UnwrittenParts& parts) {
  iovec vectors[UnwrittenParts::kAtOnce];
  msghdr message{};
  message.msg_iov = vectors;
  message.msg_iovlen = parts.next(vectors, SIZE_MAX);
  ssize_t count = message.msg_iovlen == 1
                      ? send(fd, vectors[0].iov_base, vectors[0].iov_len, MSG_NOSIGNAL)
                      : sendmsg(fd, &message, MSG_NOSIGNAL);
  return count < 0 ? -errno : count;
}

// The count is right after an error too.
Outcome write_all(Descriptor* descriptor, Stream::Parts parts, const io::Limit* limit) {
  if (descriptor == nullptr) return {0, EBADF};
  UnwrittenParts remaining(parts);
  Descriptor::Operation operation(*descriptor, descriptor->writer(), "write", limit);
  Outcome all;
  while (!remaining.empty() && all.error == 0) {
    Outcome some = operation.perform([&](int fd) { return send_some(fd, remaining); });
    remaining.drop(some.count);
    all = {all.count + some.count, some.error};
  }
  return all;
}

int wait_for_bytes(Descriptor* descriptor, const io::Limit* limit) {
  if (descriptor == nullptr) return EBADF;
  Descriptor::Operation operation(*descriptor, descriptor->reader(), "wait_readable", limit);
  Outcome outcome = operation.perform([](int fd) -> ssize_t {
    std::byte first;
    ssize_t count = recv(fd, &first, 1, MSG_PEEK);
    if (count >= 0) return 0;
    return errno == EAGAIN || errno == EINTR ? -errno : 0;  // read() reports what is wrong
  });
  return outcome.error;
}

int end_writing(Descriptor* descriptor) {
  if (descriptor == nullptr) return EBADF;
  Descriptor::KeptOpen number(*descriptor);
  if (!number) return ECANCELED;
  return number.call([](int fd) { return shutdown(fd, SHUT_WR) == 0 ? 0 : errno; });
}

}  // namespace

std::size_t SocketStream::read(std::span<std::byte> into) {
  Outcome outcome = read_some(descriptor_.get(), into, nullptr);
  if (outcome.error != 0) [[unlikely]]
    fail_at("read from", outcome.error);
  return outcome.count;
}
void SocketStream::write_parts(Parts parts) {
  Outcome outcome = write_all(descriptor_.get(), parts, nullptr);
  if (outcome.error != 0) [[unlikely]]
    fail_at("write to", outcome.error);
}
void SocketStream::shutdown_write() {
  if (int error = end_writing(descriptor_.get()); error != 0) fail_at("shutdown_write to", error);
}
void SocketStream::wait_readable() {
  if (int error = wait_for_bytes(descriptor_.get(), nullptr); error != 0)
    fail_at("wait for", error);
}

Stream::Result SocketStream::read_result(std::span<std::byte> into, const Context* context) {
  Outcome outcome = read_some(descriptor_.get(), into, ContextLimit(context).get());
  return {outcome.count, code_of(outcome.error)};
}
Stream::Result SocketStream::write_result(Parts parts, const Context* context) {
  Outcome outcome = write_all(descriptor_.get(), parts, ContextLimit(context).get());
  return {outcome.count, code_of(outcome.error)};
}
std::error_code SocketStream::shutdown_write_result() {
  return code_of(end_writing(descriptor_.get()));
}
std::error_code SocketStream::wait_readable_result(const Context* context) {
  return code_of(wait_for_bytes(descriptor_.get(), ContextLimit(context).get()));
}

void SocketStream::fail_at(const char* what, int error) const {
  std::error_code ignored;
  std::string peer = remote_address(ignored).to_string();
  // A client of a Unix socket has no name: the listener's it is.
  if (peer.empty()) peer = local_address(ignored).to_string();
  fail(code_of(error), std::string(what) + ' ' + (peer.empty() ? "a socket" : peer));
}

void SocketStream::close() noexcept {
  if (descriptor_ != nullptr) descriptor_->close();
}
void SocketStream::do_set_read_deadline(TimePoint time) noexcept {
  if (descriptor_ != nullptr)
    descriptor_->set_deadline(descriptor_->reader(), detail::deadline_at(time));
}
void SocketStream::do_set_write_deadline(TimePoint time) noexcept {
  if (descriptor_ != nullptr)
    descriptor_->set_deadline(descriptor_->writer(), detail::deadline_at(time));
}

Address SocketStream::local_address(std::error_code& error) const {
  return local_address_of(descriptor_.get(), error);
}
Address SocketStream::local_address() const {
  std::error_code error;
  Address address = local_address(error);
  if (error) fail(error, "local address of a socket");
  return address;
}
Address SocketStream::remote_address(std::error_code& error) const {
  if (peer_.sin6_family == AF_UNSPEC) return remote_address_of(descriptor_.get(), error);
  error.clear();
  auto* peer = reinterpret_cast<const sockaddr*>(&peer_);
  return Address::from(peer, peer->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof peer_);
}
Address SocketStream::remote_address() const {
  std::error_code error;
  Address address = remote_address(error);
  if (error) fail(error, "remote address of a socket");
  return address;
}
int SocketStream::native_handle() const noexcept {
  return descriptor_ == nullptr ? -1 : descriptor_->fd();
}
bool SocketStream::is_open() const noexcept { return native_handle() >= 0; }

// ---- listening

Listener::Listener() noexcept = default;
Listener::Listener(std::unique_ptr<Descriptor> descriptor, Origin origin) noexcept
    : descriptor_(std::move(descriptor)), adopted_(origin == Origin::adopted) {}
Listener::Listener(Listener&&) noexcept = default;
Listener& Listener::operator=(Listener&&) noexcept = default;
Listener::~Listener() = default;

Address Listener::local_address(std::error_code& error) const {
  return local_address_of(descriptor_.get(), error);
}
Address Listener::local_address() const {
  std::error_code error;
  Address address = local_address(error);
  if (error) fail(error, "address of a listener");
  return address;
}
void Listener::close() noexcept {
  if (descriptor_ != nullptr) descriptor_->close();
}
void Listener::set_deadline_ns(detail::DeadlineNs deadline) noexcept {
  if (descriptor_ != nullptr) descriptor_->set_deadline(descriptor_->reader(), deadline);
}
int Listener::native_handle() const noexcept {
  return descriptor_ == nullptr ? -1 : descriptor_->fd();
}
bool Listener::is_open() const noexcept { return native_handle() >= 0; }

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

Listener::Accepted Listener::accept_result(const Context* context, std::error_code& error) {
  error.clear();
  if (descriptor_ == nullptr) {
    error = code_of(EBADF);
    return {};
  }
  sockaddr_storage storage{};
  socklen_t size = 0;
  auto* peer = reinterpret_cast<sockaddr*>(&storage);
  ContextLimit limit(context);
  Descriptor::Operation operation(*descriptor_, descriptor_->reader(), "accept", limit.get());
  Outcome outcome = operation.perform([&](int listener) -> ssize_t {
    for (;;) {
      size = sizeof storage;
      int accepted = accept4(listener, peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (accepted >= 0) return accepted;
      if (!is_of_the_peer(errno)) return -errno;
    }
  });
  if (outcome.error != 0) {
    error = code_of(outcome.error);
    return {};
  }
  auto accepted = take_over(static_cast<int>(outcome.count), descriptor_->kind());
  bool is_ip = peer->sa_family == AF_INET || peer->sa_family == AF_INET6;
  return {std::move(accepted), is_ip ? Address::from(peer, size) : Address()};
}

void Listener::fail_to_accept(std::error_code error) const {
  std::error_code ignored;
  std::string where = local_address(ignored).to_string();
  fail(error, where.empty() ? "accept" : "accept at " + where);
}

}  // namespace magpie::net
