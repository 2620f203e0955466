#include <magpie/net/udp.h>

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "net/host_port.h"
#include "net/socket.h"

namespace magpie::net {

using io::Descriptor;

namespace {

std::unique_ptr<Descriptor> open_udp(const Address& address) {
  return open_socket(address.family(), SOCK_DGRAM, Descriptor::Kind::packets);
}

detail::DeadlineNs ns_of(Stream::TimePoint time) {
  return time == Stream::TimePoint::max() ? detail::kNoDeadline : detail::deadline_at(time);
}

}  // namespace

UdpSocket::UdpSocket(std::unique_ptr<Descriptor> descriptor) noexcept
    : descriptor_(std::move(descriptor)) {}
UdpSocket::UdpSocket(UdpSocket&&) noexcept = default;
UdpSocket& UdpSocket::operator=(UdpSocket&&) noexcept = default;
UdpSocket::~UdpSocket() = default;

UdpSocket UdpSocket::bind(std::string_view host_and_port) {
  Address address = address_to_bind(host_and_port);
  std::unique_ptr<Descriptor> descriptor = open_udp(address);
  bind_to(*descriptor, address);
  return UdpSocket(std::move(descriptor));
}

UdpSocket UdpSocket::connect(std::string_view host_and_port) {
  HostPort parts = split_host_port(host_and_port);
  Address address =
      resolve(parts.host.empty() ? "localhost" : parts.host).front().with_port(parts.port);
  std::unique_ptr<Descriptor> descriptor = open_udp(address);
  connect_to(*descriptor, address);
  return UdpSocket(std::move(descriptor));
}

UdpSocket::Received UdpSocket::receive_from(std::span<std::byte> into) {
  sockaddr_storage storage{};
  socklen_t size = 0;
  auto* from = reinterpret_cast<sockaddr*>(&storage);
  Descriptor::Turn turn(*descriptor_, descriptor_->reader(), "receive");
  std::size_t bytes = turn.perform([&](int fd) -> ssize_t {
    size = sizeof storage;
    ssize_t count = recvfrom(fd, into.data(), into.size(), 0, from, &size);
    return count < 0 ? -errno : count;
  });
  return {bytes, Address::from(from, size)};
}

void UdpSocket::send_to(std::span<const std::byte> datagram, const Address& to) {
  Descriptor::Turn turn(*descriptor_, descriptor_->writer(), "send_to");
  turn.perform([&](int fd) -> ssize_t {
    ssize_t count =
        sendto(fd, datagram.data(), datagram.size(), MSG_NOSIGNAL, to.data(), to.size());
    return count < 0 ? -errno : count;
  });
}

void UdpSocket::send(std::span<const std::byte> datagram) {
  Descriptor::Turn turn(*descriptor_, descriptor_->writer(), "send");
  turn.perform([&](int fd) -> ssize_t {
    ssize_t count = ::send(fd, datagram.data(), datagram.size(), MSG_NOSIGNAL);
    return count < 0 ? -errno : count;
  });
}

Address UdpSocket::local_address() const { return local_address_of(*descriptor_); }
void UdpSocket::set_read_deadline(Stream::TimePoint time) noexcept {
  descriptor_->set_deadline(descriptor_->reader(), ns_of(time));
}
void UdpSocket::set_write_deadline(Stream::TimePoint time) noexcept {
  descriptor_->set_deadline(descriptor_->writer(), ns_of(time));
}
void UdpSocket::close() noexcept {
  if (descriptor_ != nullptr) descriptor_->close();
}
int UdpSocket::native_handle() const noexcept { return descriptor_->fd(); }

}  // namespace magpie::net
