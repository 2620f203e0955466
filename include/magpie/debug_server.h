// debug_server.h: watch a running program in a browser or from Prometheus. Link with magpie::view.
//
//   magpie::run([] {
//     magpie::debug::Server watch = magpie::debug::serve();   // loopback, a free port
//     std::cerr << "watch me at " << watch.url() << "\n";
//     ...
//   });
//
// or in a server of your own, among other routes:
//
//   server.handle("/debug/{rest...}", magpie::debug::handler());
//   server.handle("GET /metrics", magpie::debug::handler());
//
//   /debug/              the page: what runs where, queues, latency, goroutines, who waits for what
//   /debug/stats         magpie::stats() as JSON
//   /debug/goroutines    every goroutine as text; ?format=json for programs
//   /debug/trace         ?seconds=5 records an execution trace, for a minute at most, and answers
//                        with its bytes. When the client goes away, the recording ends
//   /metrics             Prometheus' text format
//
// The pages show names, addresses and stacks of the program. So they are for the same machine only,
// unless a token is set: ServeOptions says who may ask.
#pragma once

#include <magpie/detail/cxx20.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <magpie/detail/api.h>
#include <magpie/http/middleware.h>
#include <magpie/net/address.h>

namespace magpie::debug {

// Who may ask. Requests that a page of another origin makes are always refused.
struct ServeOptions {
  // A secret that every request has to show: "Authorization: Bearer <token>", or ?token=<token>.
  // Empty: only clients on the same machine may ask, by a loopback address or a Unix socket, and
  // only for a host that is a loopback address, localhost, or one of `hosts`. The check of the host
  // keeps pages of the internet out whose names were made to point here (DNS rebinding).
  std::string token = {};
  // Further names by which the same machine may be asked for, without a port: "build-7.local".
  std::vector<std::string> hosts = {};
};

// Serves until it is destroyed. Movable.
class MAGPIE_API [[nodiscard]] Server {
 public:
  Server() noexcept;  // serves nothing
  Server(Server&& other) noexcept;
  Server& operator=(Server&& other) noexcept;
  // Cuts off the requests under way. Blocks until their goroutines have ended, a second at most.
  ~Server();

  net::Address local_address() const;
  // Where a browser finds the page, with the token if there is one.
  std::string url() const;

 private:
  struct State;
  friend Server serve(std::string_view where, ServeOptions options);
  friend Server serve_trace(const std::string& path, std::string_view where, ServeOptions options);
  explicit Server(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

// Shows the running program at "127.0.0.1:6060", "localhost:0" or "unix:/path", in goroutines of
// its own. Returns at once. A goroutine has to call it. Throws std::invalid_argument for an address
// that is not a loopback address without a token; else as http::Server::listen().
MAGPIE_API Server serve(std::string_view where = "127.0.0.1:0", ServeOptions options = {});

// Shows a trace file instead, as `magpie trace view` does. Throws std::runtime_error if the file is
// no trace; else as serve().
MAGPIE_API Server serve_trace(const std::string& path, std::string_view where = "127.0.0.1:0",
                              ServeOptions options = {});

// A handler for a server of your own, with the same checks. In a route that ends in {rest...} it
// answers all paths above; in another it answers what the last part of the path names.
MAGPIE_API http::Handler handler(ServeOptions options = {});

}  // namespace magpie::debug
