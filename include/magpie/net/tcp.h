// tcp.h: TCP connections, and listeners that accept them.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include <magpie/net/address.h>
#include <magpie/net/stream.h>

namespace magpie::io {
class Descriptor;  // src/io/descriptor.h
}

namespace magpie::net {

// A connected socket. Moves; the destructor closes it.
class SocketStream : public Stream {
 public:
  SocketStream(SocketStream&&) noexcept;
  SocketStream& operator=(SocketStream&&) noexcept;
  ~SocketStream() override;

  std::size_t read(std::span<std::byte> into) override;
  void write_parts(std::span<const std::span<const std::byte>> parts) override;
  using Stream::write;
  void shutdown_write() override;
  void close() noexcept override;
  void set_read_deadline_ns(detail::DeadlineNs deadline) noexcept override;
  void set_write_deadline_ns(detail::DeadlineNs deadline) noexcept override;

  void wait_readable() override;
  Address remote_address() const override;
  int native_handle() const noexcept override;

  Address local_address() const;

 protected:
  friend class Listener;
  explicit SocketStream(std::unique_ptr<io::Descriptor> descriptor) noexcept;

 private:
  std::unique_ptr<io::Descriptor> descriptor_;
};

// A listening socket. Moves; the destructor closes it.
class Listener {
 public:
  Listener(Listener&&) noexcept;
  Listener& operator=(Listener&&) noexcept;
  ~Listener();

  Address local_address() const;
  // Wakes whoever is blocked in accept() with errc::operation_canceled. Does not throw.
  void close() noexcept;
  // From then on accept() fails with errc::timed_out; TimePoint::max() takes it away.
  void set_deadline(Stream::TimePoint time) noexcept;
  int native_handle() const noexcept;

 protected:
  explicit Listener(std::unique_ptr<io::Descriptor> descriptor) noexcept;
  void listen();
  std::unique_ptr<io::Descriptor> accept_descriptor();

 private:
  std::unique_ptr<io::Descriptor> descriptor_;
};

class TcpConn : public SocketStream {
 public:
  // "host:port", where the host may be a name or an address ("[::1]:80") and the port a number. Tries the addresses of the
  // name one after the other, each a quarter of a second after the one before, and keeps the first that answers. Blocks.
  // Throws std::invalid_argument for a text that says no such thing, std::system_error if none answers.
  static TcpConn connect(std::string_view host_and_port);
  // The same within a time: errc::timed_out.
  template <class Rep, class Period>
  static TcpConn connect(std::string_view host_and_port,
                         std::chrono::duration<Rep, Period> timeout) {
    return connect_until(host_and_port, detail::deadline_after(timeout));
  }
  static TcpConn connect_until(std::string_view host_and_port, detail::DeadlineNs deadline);

 private:
  friend class TcpListener;
  using SocketStream::SocketStream;
};

class TcpListener : public Listener {
 public:
  // "127.0.0.1:80", "[::]:80", ":80" (every address of the machine), "localhost:0" (a port that is free). Blocks only to
  // resolve a name. Throws std::invalid_argument, std::system_error.
  static TcpListener bind(std::string_view host_and_port);

  // Takes over a socket that listens already: one that systemd, or a process before this one, handed over. Throws
  // std::system_error: errc::invalid_argument if it does not listen; the descriptor is the caller's then.
  static TcpListener adopt(int fd);

  // Blocks until somebody connects. Throws std::system_error: errc::operation_canceled after close(),
  // errc::too_many_files_open, ... An error of one peer is not reported but passed over.
  TcpConn accept();

 private:
  using Listener::Listener;
};

}  // namespace magpie::net
