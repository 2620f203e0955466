// debug_server.cc: the debug pages as a server of their own, or as a handler.
#include <magpie/debug_server.h>

#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include <magpie/go.h>
#include <magpie/http/server.h>

#include "view/site.h"

namespace magpie::debug {
namespace {

// Few people watch at a time, each with a page or two.
constexpr int kMostConnections = 256;

http::Handler handler_of(std::shared_ptr<view::Site> site) {
  return [site = std::move(site)](http::Request& request, http::Response& response) {
    site->answer(request, response);
  };
}

// To the page, with the query, in which the token may be.
void send_to_page(http::Request& request, http::Response& response) {
  const std::string& target = request.target();
  const std::size_t query = target.find('?');
  const std::string rest = query == std::string::npos ? "" : target.substr(query);
  response.status(307).header("Location", "/debug/" + rest).send();
}

// As a query has it: letters and digits stay, all other bytes are escaped.
std::string escaped(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string all;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool stays = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       c == '-' || c == '_';
    if (stays) {
      all += c;
    } else {
      all += '%';
      all += kDigits[byte >> 4];
      all += kDigits[byte & 15];
    }
  }
  return all;
}

// The name of the Unix socket, in the abstract space.
std::string by_pid(int pid) { return "@magpie-debug-" + std::to_string(pid); }

}  // namespace

struct Server::State {
  explicit State(std::shared_ptr<view::Site> its)
      : site(std::move(its)), server(http::ServerOptions{.max_connections = kMostConnections}) {
    server.handle("/debug/{rest...}", handler_of(site));
    server.handle("/metrics", handler_of(site));
    server.handle("GET /debug", send_to_page);
    server.handle("GET /", send_to_page);
  }

  ~State() { server.shutdown(); }

  void listen(std::string_view where) {
    server.listen(where);
    if (site->access().token().empty() && !view::is_loopback(server.local_address())) {
      throw std::invalid_argument("magpie: debug::serve at " + server.local_address().to_string() +
                                  ", which is not loopback, needs ServeOptions::token");
    }
  }

  // No listen() comes after this.
  void start() {
    served = spawn([this] { server.serve(); });
  }

  // So that tools find the process by its number. A Unix socket may have been chosen to keep other
  // users out, so then there is none.
  void listen_for_pid() {
    if (server.local_address().family() == AF_UNIX) return;
    try {
      server.listen("unix:" + by_pid(getpid()));
    } catch (const std::system_error&) {
      // This process serves already, or another has taken the name: its address still works.
    }
  }

  const std::shared_ptr<view::Site> site;
  http::Server server;
  JoinHandle<void> served;  // its destructor waits for serve(), after ~State() has shut down
};

Server::Server() noexcept = default;
Server::Server(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Server::Server(Server&& other) noexcept = default;
Server& Server::operator=(Server&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
Server::~Server() = default;

net::Address Server::local_address() const {
  return state_ == nullptr ? net::Address() : state_->server.local_address();
}

std::string Server::url() const {
  if (state_ == nullptr) return {};
  const std::string& token = state_->site->access().token();
  return "http://" + local_address().to_string() + "/debug/" +
         (token.empty() ? "" : "?token=" + escaped(token));
}

Server serve(std::string_view where, ServeOptions options) {
  auto state = std::make_unique<Server::State>(std::make_shared<view::Site>(std::move(options)));
  state->listen(where);
  state->listen_for_pid();
  state->start();
  return Server(std::move(state));
}

Server serve_trace(const std::string& path, std::string_view where, ServeOptions options) {
  auto trace = std::make_shared<const view::TraceApi>(path);
  auto state = std::make_unique<Server::State>(
      std::make_shared<view::Site>(std::move(options), std::move(trace)));
  state->listen(where);
  state->start();
  return Server(std::move(state));
}

http::Handler handler(ServeOptions options) {
  return handler_of(std::make_shared<view::Site>(std::move(options)));
}

}  // namespace magpie::debug
