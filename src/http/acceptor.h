// acceptor.h: where a server's connections come from: a listening socket, of TCP, with or without
// TLS, or of the file system.
#pragma once

#include <memory>
#include <string_view>

#include <magpie/net/address.h>
#include <magpie/net/stream.h>
#include <magpie/net/tcp.h>
#include <magpie/net/tls.h>
#include <magpie/net/unix.h>

namespace magpie::http {

class Acceptor {
 public:
  virtual ~Acceptor() = default;
  // Blocks. Throws std::system_error: errc::operation_canceled after close(), errc::timed_out after
  // stop().
  virtual std::unique_ptr<net::Stream> accept() = 0;
  // Wakes all callers that are blocked in accept(). The system takes no more connections for us
  // than are in its line now. The line of a socket that was adopted goes on, for other processes
  // that have it.
  virtual void stop() noexcept = 0;
  // After stop(): the next connection that is in line. Null: there is none, or other processes
  // serve it. Throws std::system_error.
  virtual std::unique_ptr<net::Stream> accept_waiting() = 0;
  virtual void close() noexcept = 0;
  virtual net::Address local_address() const = 0;
};

std::unique_ptr<Acceptor> make_acceptor(net::TcpListener listener);
std::unique_ptr<Acceptor> make_acceptor(net::TcpListener listener, const net::TlsServerConfig& tls);
std::unique_ptr<Acceptor> make_acceptor(net::UnixListener listener);
// A socket that is bound, and maybe listens already; taken over. Throws std::system_error,
// std::invalid_argument.
std::unique_ptr<Acceptor> make_acceptor(int descriptor);

// As UnixListener::bind. A socket file on which nobody listens any more is replaced.
net::UnixListener bind_unix(std::string_view path);

}  // namespace magpie::http
