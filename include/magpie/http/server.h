// server.h: an HTTP/1.1 server: a goroutine per connection, plain blocking handlers.
//
//   Server server;
//   server.handle("GET /hello/{name}", [](Request& req, Response& res) { res.send("hello " + req.param("name")); });
//   server.listen("127.0.0.1:8080");
//   server.serve();                                 // until somebody calls shutdown()
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <magpie/detail/deadline.h>
#include <magpie/http/error.h>
#include <magpie/http/middleware.h>
#include <magpie/http/request.h>
#include <magpie/http/response.h>
#include <magpie/net/address.h>
#include <magpie/net/tcp.h>
#include <magpie/net/tls.h>
#include <magpie/net/unix.h>
#include <magpie/signals.h>

namespace magpie::http {

class ServerCore;  // src/http/server_core.h

// The defaults are for the open internet. A time of 0 is none.
struct ServerOptions {
  std::size_t max_header_bytes = 16 * 1024;  // request line and fields; more: 414 or 431
  std::size_t max_header_fields = 100;       // more: 431
  std::uint64_t max_body_bytes = 8 << 20;    // more: 413
  // What Request::body() holds in memory, for all requests together; beyond that: 503.
  std::uint64_t max_body_memory = 256 << 20;
  // At the limit those that have been silent for longest are closed; if none is, others wait in the system's line.
  int max_connections = 16'384;
  // From one remote address, of IPv6 one /64; more are closed at once. 0: no limit. See limit_per_address() too.
  int max_connections_per_address = 0;
  std::chrono::milliseconds header_timeout{10'000};  // for a whole header, from its first byte: 408
  std::chrono::milliseconds idle_timeout{60'000};    // between requests
  std::chrono::milliseconds body_timeout{30'000};    // for each 4 KiB of a body: 408
  std::chrono::milliseconds write_timeout{30'000};   // for each 128 KiB of a response to be taken
  // For a whole body the server waits no longer than body_timeout and a second for each so many bytes, for a client to take
  // a whole response write_timeout and the same. The handler's own time does not count. 0: no such limit.
  std::uint64_t min_bytes_per_second = 1024;
  std::chrono::milliseconds rest_after{1'000};  // an idle connection gives its buffers back
  // Called in the handler's goroutine with what a handler threw, but for StatusError and failures of its connection.
  // Empty: a line on stderr.
  std::function<void(const Request&, std::exception_ptr)> on_error = {};
};

struct RouteOptions {
  std::optional<std::uint64_t> max_body_bytes = {};  // instead of the server's
};

class Server {
 public:
  explicit Server(ServerOptions options = {});
  // Shuts down without grace, if that has not been done.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // "GET /users/{id}": a method, or none for all of them, and a path. {id} stands for one segment, {rest...} at the end for
  // all that follow, also none. The most literal pattern wins, from left to right. GET also serves HEAD. Nothing matches:
  // 404; another method would: 405. Other bytes of a path stand for themselves; those that a URL escapes may be escaped.
  // Throws std::invalid_argument for a pattern that makes no sense, can never match ("get /", "GET /a b") or is there
  // already, std::logic_error once a connection has been served.
  void handle(std::string_view pattern, Handler handler, RouteOptions options = {});

  // Wraps all handlers, and all answers that the server gives without one: 404, 405, 413, and what it says to bytes that are
  // no request (400, 408, 414, 431, 505). Those have an empty method and path, if none was understood. The first one is
  // outermost. Throws std::logic_error once a connection has been served.
  void use(Middleware middleware);

  // "127.0.0.1:8080", ":8080", "localhost:0", or "unix:/path" for a Unix socket, "unix:@name" in the abstract space; a socket
  // file that nobody listens on is replaced. May be called several times. Throws as TcpListener::bind, UnixListener::bind.
  void listen(std::string_view where);
  void listen(net::TcpListener listener);
  void listen(net::UnixListener listener);
  // A stream socket, TCP or Unix, that somebody else has bound, as for socket activation: systemd passes 3, 4, ... The
  // server takes it over, unless this throws: std::system_error, std::invalid_argument.
  void listen_fd(int descriptor);
  // The same with TLS. One server may listen for both.
  void listen(std::string_view host_and_port, const net::TlsServerConfig& tls);
  // Of the first listener. Throws std::logic_error without one.
  net::Address local_address() const;

  // Accepts and serves until shutdown() has ended. Blocks. Throws std::logic_error without a listener, or when called twice.
  void serve();
  // Serves one connection, which came from somewhere else, until it ends. Blocks. Does not throw for the peer's faults.
  void serve_connection(std::unique_ptr<net::Stream> stream);

  // Accepts nobody any more, ends idle connections, lets requests under way finish. What is left after the grace is cut
  // off: contexts are cancelled, connections closed. Blocks until all have ended, for a second after the grace at
  // most. False: some handlers still run; what they use has to live on. From any goroutine or thread.
  template <class Rep, class Period>
  bool shutdown(std::chrono::duration<Rep, Period> grace) {
    return shutdown_until(detail::deadline_after(grace));
  }
  bool shutdown() { return shutdown(std::chrono::seconds(0)); }

  // serve() until one of the signals arrives, then shutdown() with that grace. A second signal ends it at once: what is
  // under way is cut off. Blocks. As shutdown(), false: some handlers still run. Throws as serve().
  //   Signals signals({SIGTERM, SIGINT});
  //   server.run_until(signals, 10s);
  template <class Rep, class Period>
  bool run_until(const Signals& signals, std::chrono::duration<Rep, Period> grace) {
    return run_until_ns(signals, detail::whole_ns(grace));
  }
  bool run_until(const Signals& signals) { return run_until(signals, std::chrono::seconds(10)); }

  // Connections that are open now. A moment's truth.
  std::size_t connections() const;

 private:
  bool shutdown_until(detail::DeadlineNs deadline);
  bool run_until_ns(const Signals& signals, std::int64_t grace_ns);
  std::shared_ptr<ServerCore> core_;
};

}  // namespace magpie::http
