// HTTP over TLS: the server with a certificate, the client with https.
#include <gtest/gtest.h>
#include <magpie/http.h>
#include <magpie/magpie.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
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

RT_TEST(HttpsServer, AnEmptyConfigIsRefusedWhenItIsGiven) {
  std::error_code error;
  net::TlsServerConfig empty({.certificate_file = "/no/such"}, error);
  EXPECT_EQ(error, std::errc::no_such_file_or_directory);
  Server server;
  server.listen("127.0.0.1:0", empty, error);
  EXPECT_EQ(error, std::errc::invalid_argument);
  EXPECT_THROW(server.listen("127.0.0.1:0", empty), std::invalid_argument);
}

RT_TEST(HttpsServer, HandlersSeeWhoTheClientIs) {
  support::Certificate ada({.common_name = "Ada", .names = ""});
  Server server;
  server.handle("GET /whoami", [](Request& req, Response& res) {
    auto peer = req.tls() == nullptr ? std::nullopt : req.tls()->peer_certificate();
    res.send(peer ? peer->common_name : "nobody");
  });
  server.listen("127.0.0.1:0", net::TlsServerConfig({.certificate_file = certificate().certificate,
                                                     .key_file = certificate().key,
                                                     .client_auth = net::TlsClientAuth::request,
                                                     .client_ca_file = ada.certificate}));
  server.listen("127.0.0.1:0");
  WaitGroup serving;
  serving.go([&] { server.serve(); });
  const std::string url =
      "https://localhost:" + std::to_string(server.local_address().port()) + "/whoami";
  Client known(ClientOptions{.tls = net::TlsClientConfig({.ca_file = certificate().certificate,
                                                          .identity = ada.identity()})});
  Client unknown(ClientOptions{.tls = certificate().client()});
  EXPECT_EQ(known.get(url).body, "Ada");
  EXPECT_EQ(unknown.get(url).body, "nobody");
  server.shutdown();
  serving.wait();
}

RT_TEST(HttpsServer, HalfARecordIsNoReasonToStayLongerThanIdleOnes) {
  using std::chrono::milliseconds;
  Server server(ServerOptions{.idle_timeout = milliseconds(100), .rest_after = milliseconds(10)});
  server.handle("GET /", [](Request&, Response& res) { res.send("hello"); });
  server.listen("127.0.0.1:0", certificate().server());
  auto served = spawn([&] { server.serve(); });
  net::TlsConn conn = net::TlsConn::connect(
      "localhost:" + std::to_string(server.local_address().port()), certificate().client());
  conn.set_deadline(std::chrono::seconds(20));
  conn.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  std::byte bytes[1000];
  EXPECT_GT(conn.read(bytes), 0u);
  EXPECT_EQ(::send(conn.native_handle(), "\x17", 1, MSG_NOSIGNAL), 1);
  std::error_code error;
  while (conn.read(bytes, error) > 0) {
  }
  EXPECT_NE(error, std::errc::timed_out);
  server.shutdown(std::chrono::seconds(0));
}

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

// ---- servers that say what nobody asked for

constexpr const char* kGood = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood";
constexpr const char* kEvil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL";

// Answers each connection's first request by a function. Tells by a channel that it has done so.
class EvilServer {
 public:
  explicit EvilServer(std::function<void(net::TlsConn&)> answer) : answer_(std::move(answer)) {
    accepting_.go([this] {
      try {
        for (;;) talking_.go([this, conn = listener_.accept()]() mutable { talk(conn); });
      } catch (const std::system_error&) {
      }
    });
  }
  ~EvilServer() {
    listener_.close();
    accepting_.wait();
    talking_.wait();
  }
  std::string url() const {
    return "https://localhost:" + std::to_string(listener_.local_address().port()) + "/";
  }
  Chan<void> done{100};
  std::atomic<int> connections{0};

 private:
  void talk(net::TlsConn& conn) {
    ++connections;
    try {
      std::string head;
      char some[1000];
      while (head.find("\r\n\r\n") == std::string::npos) {
        std::size_t n = conn.read(std::as_writable_bytes(std::span(some)));
        if (n == 0) return;
        head.append(some, n);
      }
      answer_(conn);
      done.send();
      while (conn.read(std::as_writable_bytes(std::span(some))) > 0) {
      }
    } catch (const std::system_error&) {
    }
  }

  std::function<void(net::TlsConn&)> answer_;
  net::TlsListener listener_ = net::TlsListener::bind("127.0.0.1:0", certificate().server());
  WaitGroup accepting_, talking_;
};

RT_TEST(HttpsClient, AnUnaskedReplyIsNotTheAnswerToTheNextRequest) {
  EvilServer server([](net::TlsConn& conn) {
    conn.write(kGood);
    conn.write(kEvil);  // in a record of its own
  });
  Client client(ClientOptions{.tls = certificate().client()});
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(client.get(server.url()).body, "good");
    server.done.recv();
    EXPECT_EQ(server.connections, i);
  }
}

// A POST is not repeated, so it must not be sent to somebody who has gone.
RT_TEST(HttpsClient, NothingIsSentToAServerThatHasSaidFarewell) {
  EvilServer server([](net::TlsConn& conn) {
    conn.write(kGood);
    conn.shutdown_write();
  });
  Client client(ClientOptions{.tls = certificate().client()});
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(client.post(server.url(), "").body, "good");
    server.done.recv();
  }
}

RT_TEST(HttpsClient, ANewConnectionTakesUpTheSessionOfAnEarlierOne) {
  std::atomic<int> resumed{0};
  EvilServer server([&](net::TlsConn& conn) {
    if (conn.was_resumed()) ++resumed;
    conn.write(kGood);
  });
  Client client(ClientOptions{.tls = certificate().client()});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.get(server.url(), {{"Connection", "close"}}).body, "good");
    server.done.recv();
    EXPECT_EQ(resumed, i);
  }
}

RT_TEST(HttpsClient, AContextEndsARequestOverTls) {
  EvilServer server([](net::TlsConn&) {});
  Client client(ClientOptions{.tls = certificate().client()});
  Context context = Context::background().with_cancel();
  WaitGroup canceller;
  canceller.go([&] {
    server.done.recv();
    context.cancel();
  });
  try {
    client.request({.url = server.url(), .context = context});
    ADD_FAILURE();
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::operation_canceled) << error.what();
  }
  canceller.wait();
}

}  // namespace
}  // namespace magpie::http
