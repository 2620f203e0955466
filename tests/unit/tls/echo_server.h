// echo_server.h: a TLS server for tests.
#pragma once

#include <magpie/magpie.h>
#include <magpie/net/tls.h>

#include <string>
#include <utility>

#include "support/certificate.h"
#include "support/net_test.h"

namespace magpie::support {

// A server that sends everything back, for as long as this lives.
class EchoServer {
 public:
  explicit EchoServer(net::TlsServerConfig config = certificate().server())
      : listener_(net::TlsListener::bind("127.0.0.1:0", config)),
        port(std::to_string(listener_.local_address().port())) {
    accepting_.go([this] {
      (void)error_of([this] {
        for (;;) serving_.go([conn = listener_.accept()]() mutable { echo(conn); });
      });
    });
  }
  ~EchoServer() {
    listener_.close();
    accepting_.wait();
    serving_.wait();
  }
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;

  std::string address() const { return "localhost:" + port; }

 private:
  static void echo(net::TlsConn& conn) {
    (void)error_of([&] {
      std::byte buffer[5000];
      while (std::size_t count = conn.read(buffer)) conn.write(std::span(buffer, count));
      conn.shutdown_write();
    });
  }

  net::TlsListener listener_;
  WaitGroup accepting_, serving_;

 public:
  const std::string port;
};

}  // namespace magpie::support
