#include "http/acceptor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "io/descriptor.h"
#include "net/socket.h"

namespace magpie::http {

namespace {

using std::chrono::steady_clock;

// A peer that vanished without a word is found out after a minute: 15 s of silence, then a question
// every 15 s. Accepted sockets have what their listener has.
void keep_alive(int listener) {
  constexpr int kOn = 1, kIdle = 15, kInterval = 15, kProbes = 4;
  (void)::setsockopt(listener, SOL_SOCKET, SO_KEEPALIVE, &kOn, sizeof kOn);
  (void)::setsockopt(listener, IPPROTO_TCP, TCP_KEEPIDLE, &kIdle, sizeof kIdle);
  (void)::setsockopt(listener, IPPROTO_TCP, TCP_KEEPINTVL, &kInterval, sizeof kInterval);
  (void)::setsockopt(listener, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes);
}

template <class Listener>
class SocketAcceptor : public Acceptor {
 public:
  explicit SocketAcceptor(Listener listener) : listener_(std::move(listener)) {
    if (listener_.local_address().family() != AF_UNIX) keep_alive(listener_.native_handle());
  }
  std::unique_ptr<net::Stream> accept() override {
    return std::make_unique<decltype(listener_.accept())>(listener_.accept());
  }
  void stop() noexcept override {
    // A line of length 0: connections that are in it stay, others are refused when the socket is
    // closed. That may be as soon as whoever accepts is woken, so this comes first.
    (void)::listen(listener_.native_handle(), 0);
    listener_.set_deadline(steady_clock::time_point());
  }
  std::unique_ptr<net::Stream> accept_waiting() override {
    pollfd asked{.fd = listener_.native_handle(), .events = POLLIN, .revents = 0};
    if (asked.fd < 0 || ::poll(&asked, 1, 0) <= 0) return nullptr;
    // Not for ever: who was in line may have gone.
    listener_.set_deadline(steady_clock::now() + std::chrono::milliseconds(50));
    try {
      return accept();
    } catch (const std::system_error& error) {
      if (error.code() == std::errc::timed_out) return nullptr;
      throw;
    }
  }
  void close() noexcept override { listener_.close(); }
  net::Address local_address() const override { return listener_.local_address(); }

 protected:
  Listener listener_;
};

class TlsAcceptor final : public SocketAcceptor<net::TcpListener> {
 public:
  TlsAcceptor(net::TcpListener listener, const net::TlsServerConfig& tls)
      : SocketAcceptor(std::move(listener)), tls_(tls) {}
  std::unique_ptr<net::Stream> accept() override {
    return std::make_unique<net::TlsConn>(net::TlsConn::server(listener_.accept(), tls_));
  }

 private:
  const net::TlsServerConfig tls_;
};

// A socket that somebody else has opened.
class GivenConn final : public net::SocketStream {
 public:
  explicit GivenConn(std::unique_ptr<io::Descriptor> descriptor)
      : SocketStream(std::move(descriptor)) {}
};

class GivenListener final : public net::Listener {
 public:
  explicit GivenListener(std::unique_ptr<io::Descriptor> descriptor)
      : Listener(std::move(descriptor)) {
    listen();
    sends_at_once_ = local_address().family() != AF_UNIX;
  }
  GivenConn accept() {
    std::unique_ptr<io::Descriptor> accepted = accept_descriptor();
    if (sends_at_once_) net::set_option(*accepted, IPPROTO_TCP, TCP_NODELAY, 1);
    return GivenConn(std::move(accepted));
  }

 private:
  bool sends_at_once_;
};

io::Descriptor::Kind kind_of(int descriptor) {
  int type = 0, family = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
    net::throw_errno("listen on a descriptor");
  size = sizeof family;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &family, &size) != 0)
    net::throw_errno("listen on a descriptor");
  if (type != SOCK_STREAM)
    throw std::invalid_argument("magpie: Server::listen_fd(): not a socket for connections");
  return family == AF_UNIX ? io::Descriptor::Kind::packets : io::Descriptor::Kind::stream;
}

// A socket file that nobody listens on: what a program that was killed has left.
bool is_stale_socket(const std::string& path) {
  struct stat status {};
  if (path.starts_with('@') || ::stat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode))
    return false;
  try {
    (void)net::UnixConn::connect(path);
    return false;
  } catch (const std::system_error& error) {
    return error.code() == std::errc::connection_refused;
  }
}

}  // namespace

std::unique_ptr<Acceptor> make_acceptor(net::TcpListener listener) {
  return std::make_unique<SocketAcceptor<net::TcpListener>>(std::move(listener));
}
std::unique_ptr<Acceptor> make_acceptor(net::TcpListener listener,
                                        const net::TlsServerConfig& tls) {
  return std::make_unique<TlsAcceptor>(std::move(listener), tls);
}
std::unique_ptr<Acceptor> make_acceptor(net::UnixListener listener) {
  return std::make_unique<SocketAcceptor<net::UnixListener>>(std::move(listener));
}

std::unique_ptr<Acceptor> make_acceptor(int descriptor) {
  const io::Descriptor::Kind kind = kind_of(descriptor);
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0)
    net::throw_errno("listen on a descriptor");
  return std::make_unique<SocketAcceptor<GivenListener>>(
      GivenListener(std::make_unique<io::Descriptor>(descriptor, kind)));
}

net::UnixListener bind_unix(std::string_view path) {
  const std::string name(path);
  if (is_stale_socket(name)) ::unlink(name.c_str());
  return net::UnixListener::bind(name);
}

}  // namespace magpie::http
