// server.h: an HTTP/1.1 server: a goroutine per connection, plain blocking handlers.
//
//   Server server;
//   server.handle("GET /hello/{name}",
//                 [](Request& req, Response& res) { res.send("hello " + req.param("name")); });
//   server.listen("127.0.0.1:8080");
//   server.serve();                                 // until another goroutine calls shutdown()
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
#include <system_error>

#include <magpie/context.h>
#include <magpie/detail/api.h>
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

// The defaults are for the open internet. A time of 0 means no limit.
struct ServerOptions {
  std::size_t max_header_bytes = 16 * 1024;  // request line and fields; more: 414 or 431
  std::size_t max_header_fields = 100;       // more: 431
  std::uint64_t max_body_bytes = 8 << 20;    // more: 413
  // What Request::body() holds in memory for all requests together. Beyond that, the server ends
  // bodies that come slowly: 408. If that does not help: 503.
  std::uint64_t max_body_memory = 256 << 20;
  // At the limit, the server closes the connections that have been silent for longest. If none is
  // silent, new ones wait in the system's queue.
  int max_connections = 16'384;
  // From one remote address; for IPv6, one /64. The server closes more at once. 0: no limit. See
  // limit_per_address() too.
  int max_connections_per_address = 0;
  std::chrono::milliseconds header_timeout{10'000};  // for a whole header, from its first byte: 408
  std::chrono::milliseconds idle_timeout{60'000};    // between requests
  std::chrono::milliseconds body_timeout{30'000};    // for each 4 KiB of a body: 408
  std::chrono::milliseconds write_timeout{30'000};   // for each 128 KiB of a response to be taken
  // The server waits for a whole body no longer than body_timeout and a second for each so many
  // bytes, and for a client to take a whole response no longer than write_timeout and the same. The
  // handler's own time does not count. 0: no such limit.
  std::uint64_t min_bytes_per_second = 1024;
  std::chrono::milliseconds rest_after{1'000};  // an idle connection gives its buffers back
  // Called in the handler's goroutine with what a handler threw, except StatusError and failures of
  // its connection. Empty: the server prints a line to stderr.
  std::function<void(const Request&, std::exception_ptr)> on_error = {};
};

struct RouteOptions {
  std::optional<std::uint64_t> max_body_bytes = {};  // instead of the server's
};

// Accepts connections and calls handlers.
class MAGPIE_API Server {
 public:
  explicit Server(ServerOptions options = {});
  // As shutdown() without grace, unless that has returned.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Adds a route. The pattern "GET /users/{id}" has a method, or none for all of them, and a path.
  // {id} stands for one segment, {rest...} at the end for all that follow, also none. The most
  // literal pattern wins, from left to right. GET also serves HEAD. If no pattern matches, the
  // server answers 404; if one with another method would, 405. Other bytes of a path stand for
  // themselves; bytes that a URL escapes may be escaped. Throws std::invalid_argument for a pattern
  // that makes no sense, can never match ("get /", "GET /a b") or exists already, and for an empty
  // handler; std::logic_error once a connection has been served.
  void handle(std::string_view pattern, Handler handler, RouteOptions options = {});

  // Wraps all handlers, and all answers that the server gives without one: 404, 405, 413, and its
  // answers to bytes that are no request (400, 408, 414, 431, 505). Such requests have an empty
  // method and path if none was understood. The first middleware is the outermost. Throws
  // std::invalid_argument for an empty one, std::logic_error once a connection has been served.
  void use(Middleware middleware);

  // Listens at "127.0.0.1:8080", ":8080", "localhost:0", or at a Unix socket: "unix:/path", or
  // "unix:@name" in the abstract space. A socket file at which nobody listens is replaced. May be
  // called several times. Throws as TcpListener::bind, UnixListener::bind.
  void listen(std::string_view where);
  void listen(net::TcpListener listener);
  void listen(net::UnixListener listener);
  // Listens at a bound stream socket, TCP or Unix, as in socket activation: systemd passes 3, 4,
  // ... The server takes it over, unless this throws: std::system_error, std::invalid_argument.
  void listen_fd(int descriptor);
  // As listen(), with TLS. One server may do both.
  void listen(std::string_view host_and_port, const net::TlsServerConfig& tls);
  // Without exceptions. std::invalid_argument becomes errc::invalid_argument.
  void listen(std::string_view where, std::error_code& error);
  void listen(std::string_view host_and_port, const net::TlsServerConfig& tls,
              std::error_code& error);
  void listen_fd(int descriptor, std::error_code& error);
  // The address of the first listener. Throws std::logic_error if there is none.
  net::Address local_address() const;

  // Accepts and serves connections. Blocks until shutdown() has ended. Throws std::logic_error
  // without a listener, or when called twice.
  void serve();
  // Serves one connection that came from elsewhere. Blocks until it ends. Does not throw for the
  // peer's faults.
  void serve_connection(std::unique_ptr<net::Stream> stream);

  // Stops accepting, ends idle connections and lets running requests finish. After the grace it
  // cuts off the rest: cancels their contexts and closes their connections. Blocks until all have
  // ended, but at most for a second after the grace. False: some handlers still run; what they use
  // has to live on. Any goroutine or thread may call it. If several do, the grace that ends first
  // counts for all.
  template <class Rep, class Period>
  bool shutdown(std::chrono::duration<Rep, Period> grace) {
    return shutdown_until(detail::deadline_after(grace));
  }
  bool shutdown() { return shutdown(std::chrono::seconds(0)); }

  // Calls serve() until one of the signals arrives, then shutdown() with that grace. A second
  // signal cuts everything off at once. Blocks. False: some handlers still run, as with shutdown().
  // Throws as serve().
  //
  //   Signals signals({SIGTERM, SIGINT});
  //   server.run_until(signals, 10s);
  template <class Rep, class Period>
  bool run_until(const Signals& signals, std::chrono::duration<Rep, Period> grace) {
    return run_until_ns(signals, detail::whole_ns(grace));
  }
  bool run_until(const Signals& signals) { return run_until(signals, std::chrono::seconds(10)); }
  // The same until the context is over. Nothing shortens the grace.
  template <class Rep, class Period>
  bool run_until(const Context& context, std::chrono::duration<Rep, Period> grace) {
    return run_until_ns(context, detail::whole_ns(grace));
  }
  bool run_until(const Context& context) { return run_until(context, std::chrono::seconds(10)); }

  // How many connections are open. A snapshot.
  std::size_t connections() const;

 private:
  bool shutdown_until(detail::DeadlineNs deadline);
  bool run_until_ns(const Signals& signals, std::int64_t grace_ns);
  bool run_until_ns(const Context& context, std::int64_t grace_ns);
  std::shared_ptr<ServerCore> core_;
};

}  // namespace magpie::http
