#include "http/acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include <magpie/mutex.h>

namespace magpie::http {

namespace {

using std::chrono::steady_clock;

constexpr int kUsualLine = net::BindOptions().backlog;
constexpr int kMostUnsentBytes = 128 * 1024;

// The kernel would take megabytes of an answer for a client that does not read it. All such
// connections of a machine share net.ipv4.tcp_mem: 2,000 slow readers fill it, and then no
// connection gets on. Bytes that are on their way do not count, so a fast client stays fast.
// Accepted connections inherit the option. On a Unix socket it fails, and is not needed.
void keep_little_unsent(int listener) {
  (void)::setsockopt(listener, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kMostUnsentBytes,
                     sizeof kMostUnsentBytes);
}

template <class Listener>
class SocketAcceptor : public Acceptor {
 public:
  explicit SocketAcceptor(Listener listener) : listener_(std::move(listener)) {
    // Its earlier owner may have left it without a queue.
    if (listener_.is_adopted()) (void)::listen(listener_.native_handle(), kUsualLine);
    keep_little_unsent(listener_.native_handle());
  }
  std::unique_ptr<net::Stream> accept() override {
    return std::make_unique<decltype(listener_.accept())>(listener_.accept());
  }
  void stop() noexcept override {
    // A line of length 0: connections that are in it stay, others are refused when the socket is
    // closed. That may be as soon as accept() wakes up, so this comes first. Other processes go on
    // with the line of an adopted socket.
    std::unique_lock hold(number_);
    int number = listener_.native_handle();
    if (!listener_.is_adopted() && number >= 0) (void)::listen(number, 0);
    hold.unlock();
    listener_.set_deadline(steady_clock::time_point());
  }
  std::unique_ptr<net::Stream> accept_waiting() override {
    if (listener_.is_adopted()) return nullptr;  // its next owner serves them
    pollfd asked{.fd = listener_.native_handle(), .events = POLLIN, .revents = 0};
    if (asked.fd < 0 || ::poll(&asked, 1, 0) <= 0) return nullptr;
    // Not for ever: the client that was in line may have gone.
    listener_.set_deadline(steady_clock::now() + std::chrono::milliseconds(50));
    try {
      return accept();
    } catch (const std::system_error& error) {
      if (error.code() == std::errc::timed_out) return nullptr;
      throw;
    }
  }
  void close() noexcept override {
    std::lock_guard hold(number_);
    listener_.close();
  }
  net::Address local_address() const override { return listener_.local_address(); }

 protected:
  Listener listener_;

 private:
  Mutex number_;  // the socket's number is not given back while stop() uses it
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

struct Given {
  int type = 0, family = 0;
};
[[gnu::noinline]] Given look_at(int descriptor) {
  Given given;
  socklen_t size = sizeof given.type;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &given.type, &size) == 0 &&
      ::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &given.family, &size) == 0)
    return given;
  int error = errno;
  throw std::system_error(error, std::generic_category(), "magpie: listen on a descriptor");
}

}  // namespace

std::unique_ptr<Acceptor> make_acceptor(net::TcpListener listener) {
  return std::make_unique<SocketAcceptor<net::TcpListener>>(std::move(listener));
}
std::unique_ptr<Acceptor> make_acceptor(net::TcpListener listener,
                                        const net::TlsServerConfig& tls) {
  if (tls.state() == nullptr)
    throw std::invalid_argument("magpie: Server::listen(): the config for TLS is empty");
  return std::make_unique<TlsAcceptor>(std::move(listener), tls);
}
std::unique_ptr<Acceptor> make_acceptor(net::UnixListener listener) {
  return std::make_unique<SocketAcceptor<net::UnixListener>>(std::move(listener));
}

std::unique_ptr<Acceptor> make_acceptor(int descriptor) {
  const Given given = look_at(descriptor);
  if (given.type != SOCK_STREAM)
    throw std::invalid_argument("magpie: Server::listen_fd(): not a socket for connections");
  (void)::listen(descriptor, kUsualLine);  // it may do so already; adopt() says what is wrong
  if (given.family == AF_UNIX) return make_acceptor(net::UnixListener::adopt(descriptor));
  return make_acceptor(net::TcpListener::adopt(descriptor));
}

net::UnixListener bind_unix(std::string_view path) {
  return net::UnixListener::bind(path, {.replace_stale = true});
}

}  // namespace magpie::http
