// unix.h: connections on this machine, named by a path.
#pragma once

#include <string_view>

#include <magpie/net/tcp.h>

namespace magpie::net {

class UnixConn : public SocketStream {
 public:
  // A path, or a name in the abstract space ("@name"). Blocks. Throws std::invalid_argument, std::system_error.
  static UnixConn connect(std::string_view path);

 private:
  friend class UnixListener;
  using SocketStream::SocketStream;
};

class UnixListener : public Listener {
 public:
  // Makes the socket file, which must not exist; the destructor and close() remove it. Throws std::invalid_argument,
  // std::system_error.
  static UnixListener bind(std::string_view path);
  UnixListener(UnixListener&&) noexcept = default;
  UnixListener& operator=(UnixListener&& other) noexcept;
  ~UnixListener() { close(); }

  // Blocks until somebody connects. Throws std::system_error as TcpListener::accept().
  UnixConn accept();
  void close() noexcept;

 private:
  using Listener::Listener;
  std::string path_;  // to remove; empty: nothing
};

}  // namespace magpie::net
