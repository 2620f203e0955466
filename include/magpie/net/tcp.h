// tcp.h: TCP connections, and listeners that accept them.
//
// As with streams, every call that may fail has a form with a std::error_code& at the end, which
// does not throw and returns an empty object after an error. Every call that may block has a form
// with a Context.
#pragma once

#include <magpie/detail/cxx20.h>

#include <netinet/in.h>

#include <chrono>
#include <memory>
#include <string_view>
#include <system_error>

#include <magpie/detail/api.h>
#include <magpie/net/address.h>
#include <magpie/net/stream.h>

namespace magpie::io {
class Descriptor;  // src/io/descriptor.h
}

namespace magpie::net {

// A connected socket. Movable; the destructor closes it. An empty one comes from the default
// constructor, a move or an error; calls on it fail with errc::bad_file_descriptor.
class MAGPIE_API SocketStream : public Stream {
 public:
  SocketStream() noexcept;
  SocketStream(SocketStream&&) noexcept;
  SocketStream& operator=(SocketStream&&) noexcept;
  ~SocketStream() override;

  std::size_t read(std::span<std::byte> into) override;
  void write_parts(Parts parts) override;
  void shutdown_write() override;
  void wait_readable() override;
  using Stream::read;
  using Stream::shutdown_write;
  using Stream::wait_readable;
  using Stream::write;
  using Stream::write_parts;
  void close() noexcept override;

  Address remote_address() const override;
  Address remote_address(std::error_code& error) const;
  Address local_address() const;
  Address local_address(std::error_code& error) const;
  int native_handle() const noexcept override;
  // True unless it is empty or closed.
  bool is_open() const noexcept;

  Result read_result(std::span<std::byte> into, const Context* context) override;
  Result write_result(Parts parts, const Context* context) override;
  std::error_code shutdown_write_result() override;
  std::error_code wait_readable_result(const Context* context) override;

 protected:
  friend class Listener;
  explicit SocketStream(std::unique_ptr<io::Descriptor> descriptor) noexcept;
  // Keeps the peer's address, which the system forgets after a reset.
  SocketStream(std::unique_ptr<io::Descriptor> descriptor, const Address& peer) noexcept;
  io::Descriptor* descriptor() const { return descriptor_.get(); }

 private:
  void do_set_read_deadline(TimePoint time) noexcept override;
  void do_set_write_deadline(TimePoint time) noexcept override;
  [[noreturn]] void fail_at(const char* what, int error) const;

  std::unique_ptr<io::Descriptor> descriptor_;  // null: empty
  sockaddr_in6 peer_{};                         // of either family; AF_UNSPEC: ask the system
};

// A listening socket. Movable; the destructor closes it. Calls on an empty one fail as those of
// SocketStream.
class MAGPIE_API Listener {
 public:
  Listener() noexcept;
  Listener(Listener&&) noexcept;
  Listener& operator=(Listener&&) noexcept;
  ~Listener();

  Address local_address() const;
  Address local_address(std::error_code& error) const;
  // Closes the socket. Callers that are blocked in accept() fail with errc::operation_canceled.
  // Does not throw.
  void close() noexcept;
  // From that time on accept() fails with errc::timed_out; TimePoint::max() removes the deadline.
  // Any clock will do.
  template <class Clock, class Duration>
  void set_deadline(std::chrono::time_point<Clock, Duration> time) noexcept {
    set_deadline_ns(detail::deadline_at(time));
  }
  // The same, that long after now.
  template <class Rep, class Period>
  void set_deadline(std::chrono::duration<Rep, Period> from_now) noexcept {
    set_deadline_ns(detail::deadline_after(from_now));
  }
  int native_handle() const noexcept;
  bool is_open() const noexcept;
  // True if it came by adopt(): other processes may share the socket and its queue of connections.
  bool is_adopted() const noexcept { return adopted_; }

 protected:
  enum class Origin : bool { own, adopted };
  explicit Listener(std::unique_ptr<io::Descriptor> descriptor,
                    Origin origin = Origin::own) noexcept;
  struct Accepted {
    std::unique_ptr<io::Descriptor> descriptor;
    Address peer;  // of IP sockets
  };
  Accepted accept_result(const Context* context, std::error_code& error);
  [[noreturn]] void fail_to_accept(std::error_code error) const;

 private:
  void set_deadline_ns(detail::DeadlineNs deadline) noexcept;

  std::unique_ptr<io::Descriptor> descriptor_;
  bool adopted_ = false;
};

// A TCP connection.
class MAGPIE_API TcpConn : public SocketStream {
 public:
  TcpConn() noexcept = default;

  // Connects to "host:port". The host is a name or an address ("[::1]:80"), the port a number.
  // Tries the addresses of the name one after the other, each a quarter of a second after the one
  // before, and keeps the first that answers. Blocks. Throws std::invalid_argument for a text that
  // is no such address (an error_code says errc::invalid_argument), std::system_error if no address
  // answers.
  static TcpConn connect(std::string_view host_and_port);
  static TcpConn connect(std::string_view host_and_port, std::error_code& error);
  // As above, until time is up, the look-up of the name included: errc::timed_out.
  template <class Rep, class Period>
  static TcpConn connect(std::string_view host_and_port,
                         std::chrono::duration<Rep, Period> timeout) {
    return connect_until_ns(host_and_port, detail::deadline_after(timeout));
  }
  template <class Rep, class Period>
  static TcpConn connect(std::string_view host_and_port, std::chrono::duration<Rep, Period> timeout,
                         std::error_code& error) {
    return connect_until_ns(host_and_port, detail::deadline_after(timeout), error);
  }
  // As above, until a time of any clock.
  template <class Clock, class Duration>
  static TcpConn connect(std::string_view host_and_port,
                         std::chrono::time_point<Clock, Duration> deadline) {
    return connect_until_ns(host_and_port, detail::deadline_at(deadline));
  }
  template <class Clock, class Duration>
  static TcpConn connect(std::string_view host_and_port,
                         std::chrono::time_point<Clock, Duration> deadline,
                         std::error_code& error) {
    return connect_until_ns(host_and_port, detail::deadline_at(deadline), error);
  }
  // As above, until the context is over.
  static TcpConn connect(std::string_view host_and_port, const Context& context);
  static TcpConn connect(std::string_view host_and_port, const Context& context,
                         std::error_code& error);

  // Takes over a connected TCP socket, makes it non-blocking, and closes it in the end. Throws
  // std::system_error: errc::invalid_argument if it is no such socket; then it stays the caller's.
  static TcpConn adopt(int fd);
  static TcpConn adopt(int fd, std::error_code& error);

  // After so long without a byte the system asks the peer whether it is there, and again each time
  // as long. If several such questions get no answer, the connection fails with errc::timed_out.
  // Zero: never ask. Connections begin with 15 seconds, accepted ones with what their listener
  // says.
  void set_keep_alive(std::chrono::seconds idle);
  void set_keep_alive(std::chrono::seconds idle, std::error_code& error);

 private:
  friend class TcpListener;
  static TcpConn connect_until_ns(std::string_view host_and_port, detail::DeadlineNs deadline);
  static TcpConn connect_until_ns(std::string_view host_and_port, detail::DeadlineNs deadline,
                                  std::error_code& error);
  using SocketStream::SocketStream;
};

// How a listener is bound.
struct BindOptions {
  // How many connections may wait for accept(). The system has its own limit (net.core.somaxconn).
  int backlog = 65'535;
  // Lets several sockets share the port, of this process or of others of the same user; the system
  // distributes connections among them (SO_REUSEPORT).
  bool reuse_port = false;
  // For accepted connections: see TcpConn::set_keep_alive().
  std::chrono::seconds keep_alive{15};
};

// Accepts TCP connections.
class MAGPIE_API TcpListener : public Listener {
 public:
  TcpListener() noexcept = default;

  // Listens at "127.0.0.1:80", "[::]:80", ":80" (every address of the machine) or "localhost:0" (a
  // free port). Blocks only to resolve a name. Throws std::invalid_argument (an error_code says
  // errc::invalid_argument), std::system_error.
  static TcpListener bind(std::string_view host_and_port);
  static TcpListener bind(std::string_view host_and_port, std::error_code& error);
  static TcpListener bind(std::string_view host_and_port, const BindOptions& options);
  static TcpListener bind(std::string_view host_and_port, const BindOptions& options,
                          std::error_code& error);
  static TcpListener bind(std::string_view host_and_port, const BindOptions& options,
                          const Context& context);
  static TcpListener bind(std::string_view host_and_port, const BindOptions& options,
                          const Context& context, std::error_code& error);

  // Takes over a listening TCP socket, as TcpConn::adopt(): one that systemd made
  // (inherited_sockets()), or a program before this one.
  static TcpListener adopt(int fd);
  static TcpListener adopt(int fd, std::error_code& error);

  // Blocks until a peer connects. Throws std::system_error: errc::operation_canceled after close(),
  // errc::too_many_files_open, ... Skips errors of a single peer.
  TcpConn accept();
  TcpConn accept(std::error_code& error);
  TcpConn accept(const Context& context);
  TcpConn accept(const Context& context, std::error_code& error);

 private:
  using Listener::Listener;
  TcpConn accept_within(const Context* context, std::error_code& error);
};

}  // namespace magpie::net
