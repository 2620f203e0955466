// udp.h: datagrams. Calls have forms with an error_code or a Context at the end, as in stream.h.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>

#include <magpie/detail/api.h>
#include <magpie/net/address.h>
#include <magpie/net/stream.h>
#include <magpie/net/tcp.h>

namespace magpie::net {

// A UDP socket. Movable; the destructor closes it. Calls on an empty one fail as those of
// SocketStream.
class MAGPIE_API UdpSocket {
 public:
  using Bytes = std::span<const std::byte>;

  // As TcpListener::bind. Of the options only reuse_port counts.
  static UdpSocket bind(std::string_view host_and_port);
  static UdpSocket bind(std::string_view host_and_port, std::error_code& error);
  static UdpSocket bind(std::string_view host_and_port, const BindOptions& options);
  static UdpSocket bind(std::string_view host_and_port, const BindOptions& options,
                        std::error_code& error);
  static UdpSocket bind(std::string_view host_and_port, const BindOptions& options,
                        const Context& context);
  static UdpSocket bind(std::string_view host_and_port, const BindOptions& options,
                        const Context& context, std::error_code& error);
  // Sends to, and receives from, this peer alone. As TcpConn::connect, but takes the first address,
  // since nobody answers.
  static UdpSocket connect(std::string_view host_and_port);
  static UdpSocket connect(std::string_view host_and_port, std::error_code& error);
  static UdpSocket connect(std::string_view host_and_port, const Context& context);
  static UdpSocket connect(std::string_view host_and_port, const Context& context,
                           std::error_code& error);
  // Takes over a UDP socket, as TcpConn::adopt().
  static UdpSocket adopt(int fd);
  static UdpSocket adopt(int fd, std::error_code& error);

  UdpSocket() noexcept;
  UdpSocket(UdpSocket&&) noexcept;
  UdpSocket& operator=(UdpSocket&&) noexcept;
  ~UdpSocket();

  struct Received {
    std::size_t bytes = 0;  // of the datagram, as far as they fit
    Address from;
    bool truncated = false;  // it was longer: the rest is lost
  };
  // Blocks until a datagram arrives. Throws std::system_error, as Stream.
  Received receive_from(std::span<std::byte> into);
  Received receive_from(std::span<std::byte> into, std::error_code& error);
  Received receive_from(std::span<std::byte> into, const Context& context);
  Received receive_from(std::span<std::byte> into, const Context& context, std::error_code& error);
  // As receive_from(), and returns the size alone.
  std::size_t receive(std::span<std::byte> into) { return receive_from(into).bytes; }
  std::size_t receive(std::span<std::byte> into, std::error_code& error) {
    return receive_from(into, error).bytes;
  }
  std::size_t receive(std::span<std::byte> into, const Context& context) {
    return receive_from(into, context).bytes;
  }
  std::size_t receive(std::span<std::byte> into, const Context& context, std::error_code& error) {
    return receive_from(into, context, error).bytes;
  }
  // Block while the system's buffer is full. Throw std::system_error, as Stream.
  void send_to(Bytes datagram, const Address& to);
  void send_to(Bytes datagram, const Address& to, std::error_code& error);
  void send_to(Bytes datagram, const Address& to, const Context& context);
  void send_to(Bytes datagram, const Address& to, const Context& context, std::error_code& error);
  void send(Bytes datagram);
  void send(Bytes datagram, std::error_code& error);
  void send(Bytes datagram, const Context& context);
  void send(Bytes datagram, const Context& context, std::error_code& error);

  Address local_address() const;
  Address local_address(std::error_code& error) const;
  // From that time on, receiving, sending or both fail with errc::timed_out, as in Stream.
  template <class Clock, class Duration>
  void set_read_deadline(std::chrono::time_point<Clock, Duration> time) noexcept {
    set_read_deadline_ns(detail::deadline_at(time));
  }
  template <class Clock, class Duration>
  void set_write_deadline(std::chrono::time_point<Clock, Duration> time) noexcept {
    set_write_deadline_ns(detail::deadline_at(time));
  }
  template <class Clock, class Duration>
  void set_deadline(std::chrono::time_point<Clock, Duration> time) noexcept {
    detail::DeadlineNs ns = detail::deadline_at(time);
    set_read_deadline_ns(ns);
    set_write_deadline_ns(ns);
  }
  // The same, that long after now.
  template <class Rep, class Period>
  void set_read_deadline(std::chrono::duration<Rep, Period> from_now) noexcept {
    set_read_deadline_ns(detail::deadline_after(from_now));
  }
  template <class Rep, class Period>
  void set_write_deadline(std::chrono::duration<Rep, Period> from_now) noexcept {
    set_write_deadline_ns(detail::deadline_after(from_now));
  }
  template <class Rep, class Period>
  void set_deadline(std::chrono::duration<Rep, Period> from_now) noexcept {
    detail::DeadlineNs ns = detail::deadline_after(from_now);
    set_read_deadline_ns(ns);
    set_write_deadline_ns(ns);
  }
  void close() noexcept;
  int native_handle() const noexcept;
  bool is_open() const noexcept;

 private:
  explicit UdpSocket(std::unique_ptr<io::Descriptor> descriptor) noexcept;
  Received receive_result(std::span<std::byte> into, const Context* context,
                          std::error_code& error);
  // `to` null: the peer.
  std::error_code send_result(Bytes datagram, const Address* to, const Context* context);
  void throw_if(std::error_code error, const char* what, const Address* peer) const;
  void set_read_deadline_ns(detail::DeadlineNs deadline) noexcept;
  void set_write_deadline_ns(detail::DeadlineNs deadline) noexcept;

  std::unique_ptr<io::Descriptor> descriptor_;  // null: empty
};

}  // namespace magpie::net
