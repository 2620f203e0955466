// udp.h: datagrams.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include <magpie/net/address.h>
#include <magpie/net/stream.h>

namespace magpie::io {
class Descriptor;
}

namespace magpie::net {

class UdpSocket {
 public:
  // As TcpListener::bind.
  static UdpSocket bind(std::string_view host_and_port);
  // Sends to, and receives from, this peer alone. As TcpConn::connect, but the first address is taken: nobody answers.
  static UdpSocket connect(std::string_view host_and_port);

  UdpSocket(UdpSocket&&) noexcept;
  UdpSocket& operator=(UdpSocket&&) noexcept;
  ~UdpSocket();

  struct Received {
    std::size_t bytes;  // of the datagram, as far as they fit
    Address from;
  };
  // Blocks until a datagram arrives. Throws std::system_error, as Stream.
  Received receive_from(std::span<std::byte> into);
  std::size_t receive(std::span<std::byte> into) { return receive_from(into).bytes; }
  // Blocks while the system's buffer is full. Throws std::system_error, as Stream.
  void send_to(std::span<const std::byte> datagram, const Address& to);
  void send(std::span<const std::byte> datagram);

  Address local_address() const;
  void set_read_deadline(Stream::TimePoint time) noexcept;
  void set_write_deadline(Stream::TimePoint time) noexcept;
  void close() noexcept;
  int native_handle() const noexcept;

 private:
  explicit UdpSocket(std::unique_ptr<io::Descriptor> descriptor) noexcept;
  std::unique_ptr<io::Descriptor> descriptor_;
};

}  // namespace magpie::net
