// soak_site.h: the servers of the soak: HTTP, plain and with TLS, and one that echoes.
#pragma once

#include <gtest/gtest.h>
#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "support/certificate.h"

namespace magpie::soak {

using namespace std::chrono_literals;
using Random = std::mt19937_64;

inline std::size_t up_to(Random& random, std::size_t most) { return random() % (most + 1); }
inline std::chrono::microseconds a_while(Random& random, std::size_t most_us) {
  return std::chrono::microseconds(up_to(random, most_us));
}

// A text that belongs to its number: one that comes from elsewhere, or from another place of
// itself, is told apart.
inline std::string text_of(std::size_t number, std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i)
    text[i] = static_cast<char>('a' + (number * 7 + i + i / 26 * 3) % 26);
  return text;
}

inline void add_routes(http::Server& server) {
  using http::Request;
  using http::Response;
  server.handle("GET /text/{number}/{size}", [](Request& req, Response& res) {
    res.send(text_of(std::stoul(req.param("number")), std::stoul(req.param("size"))));
  });
  server.handle("GET /parts/{number}/{size}", [](Request& req, Response& res) {
    std::string text = text_of(std::stoul(req.param("number")), std::stoul(req.param("size")));
    for (std::string_view rest = text; !rest.empty();) {
      std::size_t n = std::min<std::size_t>(rest.size(), 7000);
      res.write(rest.substr(0, n));
      if (n % 2 == 0) res.flush();
      rest.remove_prefix(n);
    }
  });
  server.handle("POST /echo", [](Request& req, Response& res) {
    char buffer[3000];
    while (std::size_t n = req.read(std::span<char>(buffer))) res.write({buffer, n});
  });
  server.handle("POST /whole", [](Request& req, Response& res) { res.send(req.body()); });
  server.handle("GET /wait", [](Request& req, Response& res) {
    Chan<void> done = req.context().done();
    select(on_recv(done, [](bool) {}), on_timeout(30ms, [] {}));
    res.send("waited");
  });
  server.handle("GET /blocking", [](Request&, Response& res) {
    blocking([] { ::usleep(500); });
    res.send("blocked");
  });
}

// Lives as long as the soak; what lives as long as a round is in Clients.
class Site {
 public:
  Site() {
    plain_.listen("127.0.0.1:0");
    tls_.listen("127.0.0.1:0", support::certificate().server());
    for (http::Server* server : {&plain_, &tls_}) {
      add_routes(*server);
      serving_.go([server] { server->serve(); });
    }
    serving_.go([this] { echo(); });
  }
  ~Site() {
    EXPECT_TRUE(plain_.shutdown(10s));
    EXPECT_TRUE(tls_.shutdown(10s));
    echo_.close();
    serving_.wait();
  }

  std::string plain_address() const { return plain_.local_address().to_string(); }
  std::string tls_address() const { return tls_.local_address().to_string(); }
  std::string echo_address() const { return echo_.local_address().to_string(); }

 private:
  void echo() {
    for (;;) {
      try {
        go([conn = std::make_shared<net::TcpConn>(echo_.accept())] {
          try {
            std::byte buffer[2000];
            while (std::size_t n = conn->read(buffer)) conn->write(std::span(buffer, n));
          } catch (const std::system_error&) {  // the client's doing
          }
        });
      } catch (const std::system_error&) {
        return;
      }
    }
  }

  // On a busy machine a client may stand still for longer than a server should wait for it.
  static http::ServerOptions options() {
    return {.header_timeout = 10min,
            .idle_timeout = 10min,
            .body_timeout = 10min,
            .write_timeout = 10min,
            .on_error = [](const http::Request& req, std::exception_ptr error) {
              try {
                std::rethrow_exception(error);
              } catch (const std::exception& thrown) {
                ADD_FAILURE() << "the handler of " << req.target() << " threw: " << thrown.what();
              }
            }};
  }

  http::Server plain_{options()}, tls_{options()};
  net::TcpListener echo_ = net::TcpListener::bind("127.0.0.1:0");
  WaitGroup serving_;
};

}  // namespace magpie::soak
