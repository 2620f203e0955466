#include <magpie/net/udp.h>

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "net/errors.h"
#include "net/host_port.h"
#include "net/resolve.h"
#include "net/socket.h"

namespace magpie::net {

using io::Descriptor;

namespace {

std::unique_ptr<Descriptor> open_udp(const Address& address, std::error_code& error) {
  return open_socket(address.family(), SOCK_DGRAM, Descriptor::Kind::packets, error);
}

// Throw std::invalid_argument for a text that is no address. The context may be null.
std::unique_ptr<Descriptor> bind_udp(std::string_view host_and_port, const BindOptions& options,
                                     const Context* context, std::error_code& error) {
  Address address = address_to_bind(host_and_port, context, error);
  if (error) return nullptr;
  std::unique_ptr<Descriptor> descriptor = open_udp(address, error);
  if (!error && options.reuse_port) error = set_option(*descriptor, SOL_SOCKET, SO_REUSEPORT, 1);
  if (!error) error = bind_to(*descriptor, address);
  return error ? nullptr : std::move(descriptor);
}

std::unique_ptr<Descriptor> connect_udp(std::string_view host_and_port, const Context* context,
                                        std::error_code& error) {
  HostPort to = split_host_port(host_and_port);
  std::vector<Address> found =
      look_up(to.host.empty() ? "localhost" : to.host, detail::kNoDeadline, context, error);
  if (error) return nullptr;
  Address address = found.front().with_port(to.port);
  std::unique_ptr<Descriptor> descriptor = open_udp(address, error);
  if (!error) error = connect_to(*descriptor, address, context);
  return error ? nullptr : std::move(descriptor);
}

}  // namespace

UdpSocket::UdpSocket() noexcept = default;
UdpSocket::UdpSocket(std::unique_ptr<Descriptor> descriptor) noexcept
    : descriptor_(std::move(descriptor)) {}
UdpSocket::UdpSocket(UdpSocket&&) noexcept = default;
UdpSocket& UdpSocket::operator=(UdpSocket&&) noexcept = default;
UdpSocket::~UdpSocket() = default;

UdpSocket UdpSocket::bind(std::string_view host_and_port) {
  return bind(host_and_port, BindOptions());
}
UdpSocket UdpSocket::bind(std::string_view host_and_port, std::error_code& error) {
  return bind(host_and_port, BindOptions(), error);
}
UdpSocket UdpSocket::bind(std::string_view host_and_port, const BindOptions& options) {
  std::error_code error;
  UdpSocket socket(bind_udp(host_and_port, options, nullptr, error));
  if (error) fail(error, binding(host_and_port));
  return socket;
}
UdpSocket UdpSocket::bind(std::string_view host_and_port, const BindOptions& options,
                          std::error_code& error) {
  return UdpSocket(
      without_throwing(error, [&] { return bind_udp(host_and_port, options, nullptr, error); }));
}
UdpSocket UdpSocket::bind(std::string_view host_and_port, const BindOptions& options,
                          const Context& context) {
  std::error_code error;
  UdpSocket socket(bind_udp(host_and_port, options, &context, error));
  if (error) fail(error, binding(host_and_port));
  return socket;
}
UdpSocket UdpSocket::bind(std::string_view host_and_port, const BindOptions& options,
                          const Context& context, std::error_code& error) {
  return UdpSocket(
      without_throwing(error, [&] { return bind_udp(host_and_port, options, &context, error); }));
}

UdpSocket UdpSocket::connect(std::string_view host_and_port) {
  std::error_code error;
  UdpSocket socket(connect_udp(host_and_port, nullptr, error));
  if (error) fail(error, connecting(host_and_port));
  return socket;
}
UdpSocket UdpSocket::connect(std::string_view host_and_port, std::error_code& error) {
  return UdpSocket(
      without_throwing(error, [&] { return connect_udp(host_and_port, nullptr, error); }));
}
UdpSocket UdpSocket::connect(std::string_view host_and_port, const Context& context) {
  std::error_code error;
  UdpSocket socket(connect_udp(host_and_port, &context, error));
  if (error) fail(error, connecting(host_and_port));
  return socket;
}
UdpSocket UdpSocket::connect(std::string_view host_and_port, const Context& context,
                             std::error_code& error) {
  return UdpSocket(
      without_throwing(error, [&] { return connect_udp(host_and_port, &context, error); }));
}

UdpSocket UdpSocket::adopt(int fd, std::error_code& error) {
  return UdpSocket(
      adopt_socket(fd, AF_INET, Expected::datagrams, Descriptor::Kind::packets, error));
}
UdpSocket UdpSocket::adopt(int fd) {
  std::error_code error;
  UdpSocket socket = adopt(fd, error);
  if (error) fail(error, adopting(fd) + " as a UDP socket");
  return socket;
}

// ---- receiving

UdpSocket::Received UdpSocket::receive_result(std::span<std::byte> into, const Context* context,
                                              std::error_code& error) {
  if (descriptor_ == nullptr) {
    error = code_of(EBADF);
    return {};
  }
  sockaddr_storage storage{};
  socklen_t size = 0;
  auto* from = reinterpret_cast<sockaddr*>(&storage);
  ContextLimit limit(context);
  Descriptor::Operation operation(*descriptor_, descriptor_->reader(), "receive", limit.get());
  io::Outcome outcome = operation.perform([&](int fd) -> ssize_t {
    size = sizeof storage;
    // MSG_TRUNC: the length of the datagram, also if not all of it fits.
    ssize_t count = recvfrom(fd, into.data(), into.size(), MSG_TRUNC, from, &size);
    return count < 0 ? -errno : count;
  });
  error = code_of(outcome.error);
  if (error) return {};
  return {std::min(outcome.count, into.size()), Address::from(from, size),
          outcome.count > into.size()};
}

UdpSocket::Received UdpSocket::receive_from(std::span<std::byte> into) {
  std::error_code error;
  Received received = receive_result(into, nullptr, error);
  throw_if(error, "receive", nullptr);
  return received;
}
UdpSocket::Received UdpSocket::receive_from(std::span<std::byte> into, std::error_code& error) {
  return receive_result(into, nullptr, error);
}
UdpSocket::Received UdpSocket::receive_from(std::span<std::byte> into, const Context& context) {
  std::error_code error;
  Received received = receive_result(into, &context, error);
  throw_if(error, "receive", nullptr);
  return received;
}
UdpSocket::Received UdpSocket::receive_from(std::span<std::byte> into, const Context& context,
                                            std::error_code& error) {
  return receive_result(into, &context, error);
}

// ---- sending

std::error_code UdpSocket::send_result(Bytes datagram, const Address* to, const Context* context) {
  if (descriptor_ == nullptr) return code_of(EBADF);
  const sockaddr* address = to == nullptr ? nullptr : to->data();
  socklen_t size = to == nullptr ? 0 : to->size();
  ContextLimit limit(context);
  Descriptor::Operation operation(*descriptor_, descriptor_->writer(), "send", limit.get());
  io::Outcome outcome = operation.perform([&](int fd) -> ssize_t {
    ssize_t count = sendto(fd, datagram.data(), datagram.size(), MSG_NOSIGNAL, address, size);
    return count < 0 ? -errno : count;
  });
  return code_of(outcome.error);
}

void UdpSocket::send_to(Bytes datagram, const Address& to) {
  throw_if(send_result(datagram, &to, nullptr), "send to", &to);
}
void UdpSocket::send_to(Bytes datagram, const Address& to, std::error_code& error) {
  error = send_result(datagram, &to, nullptr);
}
void UdpSocket::send_to(Bytes datagram, const Address& to, const Context& context) {
  throw_if(send_result(datagram, &to, &context), "send to", &to);
}
void UdpSocket::send_to(Bytes datagram, const Address& to, const Context& context,
                        std::error_code& error) {
  error = send_result(datagram, &to, &context);
}
void UdpSocket::send(Bytes datagram) {
  throw_if(send_result(datagram, nullptr, nullptr), "send", nullptr);
}
void UdpSocket::send(Bytes datagram, std::error_code& error) {
  error = send_result(datagram, nullptr, nullptr);
}
void UdpSocket::send(Bytes datagram, const Context& context) {
  throw_if(send_result(datagram, nullptr, &context), "send", nullptr);
}
void UdpSocket::send(Bytes datagram, const Context& context, std::error_code& error) {
  error = send_result(datagram, nullptr, &context);
}

// With the peer that was meant, the one that the socket is connected to, or else the socket's own
// address.
void UdpSocket::throw_if(std::error_code error, const char* what, const Address* peer) const {
  if (!error) [[likely]]
    return;
  std::string text = what;
  std::error_code ignored;
  if (peer != nullptr) {
    text += ' ' + peer->to_string();
  } else if (std::string name = remote_address_of(descriptor_.get(), ignored).to_string();
             !name.empty()) {
    text += ", peer " + name;
  } else if (name = local_address_of(descriptor_.get(), ignored).to_string(); !name.empty()) {
    text += " at " + name;
  }
  fail(error, text);
}

Address UdpSocket::local_address(std::error_code& error) const {
  return local_address_of(descriptor_.get(), error);
}
Address UdpSocket::local_address() const {
  std::error_code error;
  Address address = local_address(error);
  if (error) fail(error, "address of a socket");
  return address;
}
void UdpSocket::set_read_deadline_ns(detail::DeadlineNs deadline) noexcept {
  if (descriptor_ != nullptr) descriptor_->set_deadline(descriptor_->reader(), deadline);
}
void UdpSocket::set_write_deadline_ns(detail::DeadlineNs deadline) noexcept {
  if (descriptor_ != nullptr) descriptor_->set_deadline(descriptor_->writer(), deadline);
}
void UdpSocket::close() noexcept {
  if (descriptor_ != nullptr) descriptor_->close();
}
int UdpSocket::native_handle() const noexcept {
  return descriptor_ == nullptr ? -1 : descriptor_->fd();
}
bool UdpSocket::is_open() const noexcept { return native_handle() >= 0; }

}  // namespace magpie::net
