// unix.h: connections on this machine, named by a path. Calls have forms with an error_code or a
// Context at the end, as in tcp.h.
#pragma once

#include <magpie/detail/cxx20.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include <magpie/detail/api.h>
#include <magpie/net/tcp.h>

namespace magpie::net {

// A connection over a Unix socket.
class MAGPIE_API UnixConn : public SocketStream {
 public:
  UnixConn() noexcept = default;

  // Connects to a path, or to a name in the abstract space ("@name"). Never blocks: a listener
  // whose queue is full refuses. Throws std::invalid_argument (an error_code says
  // errc::invalid_argument), std::system_error.
  static UnixConn connect(std::string_view path);
  static UnixConn connect(std::string_view path, std::error_code& error);
  // Fails if the context is over.
  static UnixConn connect(std::string_view path, const Context& context);
  static UnixConn connect(std::string_view path, const Context& context, std::error_code& error);

  // Takes over a connected Unix socket, as TcpConn::adopt(): also an end of socketpair().
  static UnixConn adopt(int fd);
  static UnixConn adopt(int fd, std::error_code& error);

 private:
  friend class UnixListener;
  using SocketStream::SocketStream;
};

// How a listener is bound.
struct UnixBindOptions {
  // How many connections may wait for accept(). The system has its own limit (net.core.somaxconn).
  int backlog = 65'535;
  // Removes first a socket file at which nobody listens any more, left behind by a program that was
  // killed. The file of a living listener stays, however busy it is, and so does a file that is no
  // socket. Not for two programs that may start at the same time.
  bool replace_stale = false;
};

// Accepts connections at a Unix socket.
class MAGPIE_API UnixListener : public Listener {
 public:
  UnixListener() noexcept = default;

  // Makes the socket file, which must not exist. The destructor and close() remove it, unless
  // another file has its name by then. Throws std::invalid_argument (an error_code says
  // errc::invalid_argument), std::system_error.
  static UnixListener bind(std::string_view path);
  static UnixListener bind(std::string_view path, std::error_code& error);
  static UnixListener bind(std::string_view path, const UnixBindOptions& options);
  static UnixListener bind(std::string_view path, const UnixBindOptions& options,
                           std::error_code& error);

  // Takes over a listening Unix socket, as TcpListener::adopt(). Its file stays when this is
  // closed.
  static UnixListener adopt(int fd);
  static UnixListener adopt(int fd, std::error_code& error);

  UnixListener(UnixListener&&) noexcept = default;
  UnixListener& operator=(UnixListener&& other) noexcept;
  ~UnixListener() { close(); }

  // Blocks until a peer connects. Throws std::system_error as TcpListener::accept().
  UnixConn accept();
  UnixConn accept(std::error_code& error);
  UnixConn accept(const Context& context);
  UnixConn accept(const Context& context, std::error_code& error);
  void close() noexcept;

 private:
  using Listener::Listener;
  struct File {
    static File at(const std::string& path) noexcept;
    bool operator==(const File&) const = default;

    std::array<std::uint32_t, 2> device{};
    std::uint64_t number = 0;
    std::array<std::int64_t, 2> made{};  // seconds and nanoseconds
  };
  void remember_file(std::string_view path);

  std::string path_;  // to remove; empty: nothing
  File file_;         // what path_ named when it was bound
};

}  // namespace magpie::net
