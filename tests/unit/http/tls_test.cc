// HTTP over TLS: the server with a certificate, the client with https.
#include <gtest/gtest.h>
#include <magpie/http.h>
#include <magpie/magpie.h>

#include <chrono>
#include <string>
#include <system_error>

#include "support/certificate.h"
#include "support/openssl_tsan.h"
#include "support/rt_test.h"

namespace magpie::http {
namespace {

using support::certificate;

// Serves for as long as this lives.
class HttpsTestServer {
 public:
  HttpsTestServer() {
    server_.handle("GET /hello/{name}", [](Request& req, Response& res) {
      res.send("hello " + std::string(req.param("name")));
    });
    server_.handle("POST /echo", [](Request& req, Response& res) { res.send(req.body()); });
    server_.listen("127.0.0.1:0", certificate().server());
    serving_.go([this] { server_.serve(); });
  }
  ~HttpsTestServer() {
    server_.shutdown();
    serving_.wait();
  }
  HttpsTestServer(const HttpsTestServer&) = delete;
  HttpsTestServer& operator=(const HttpsTestServer&) = delete;

  std::string root() const {
    return "https://localhost:" + std::to_string(server_.local_address().port());
  }

 private:
  Server server_;
  WaitGroup serving_;
};

RT_TEST(HttpsServer, AnswersAndKeepsTheConnection) {
  HttpsTestServer server;
  Client client(ClientOptions{.tls = certificate().client()});
  for (int i = 0; i < 5; ++i) {
    Reply reply = client.get(server.root() + "/hello/Ada");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "hello Ada");
    EXPECT_EQ(client.idle_connections(), 1u);
  }
  std::string much(300'000, 'x');
  EXPECT_EQ(client.post(server.root() + "/echo", much).body, much);
}

RT_TEST(HttpsServer, ManyAskAtOnce) {
  HttpsTestServer server;
  Client client(ClientOptions{.tls = certificate().client()});
  WaitGroup all;
  for (int i = 0; i < 20; ++i) {
    all.go([&, i] {
      std::string name = std::to_string(i);
      EXPECT_EQ(client.get(server.root() + "/hello/" + name).body, "hello " + name);
    });
  }
  all.wait();
}

RT_TEST(HttpsClient, RefusesACertificateThatNobodyVouchesFor) {
  HttpsTestServer server;
  Client client;
  try {
    client.get(server.root() + "/hello/Ada");
    ADD_FAILURE();
  } catch (const std::system_error& error) {
    EXPECT_EQ(&error.code().category(), &net::tls_errors()) << error.what();
  }
}

// Somebody speaks plain HTTP to it: a clean end, and it goes on.
RT_TEST(HttpsServer, GarbageEndsOneConnectionOnly) {
  HttpsTestServer server;
  Client client(ClientOptions{.tls = certificate().client()});
  std::string plain = "http" + server.root().substr(5);
  EXPECT_ANY_THROW(client.get(plain + "/hello/Ada"));
  EXPECT_EQ(client.get(server.root() + "/hello/Ada").status, 200);
}

// A peer that connects and never says hello is cut off as one that never finishes its header.
RT_TEST(HttpsServer, ASilentPeerIsCutOff) {
  Server server(ServerOptions{.header_timeout = std::chrono::milliseconds(20)});
  server.listen("127.0.0.1:0", certificate().server());
  WaitGroup serving;
  serving.go([&] { server.serve(); });
  net::TcpConn silent = net::TcpConn::connect(server.local_address().to_string());
  std::byte byte;
  EXPECT_EQ(silent.read({&byte, 1}), 0u);
  server.shutdown();
  serving.wait();
}

}  // namespace
}  // namespace magpie::http
