// client_test.cc: a client and a server talk over sockets.

#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net.h>

#include <cstring>
#include <string>

#include "support/rt_test.h"

namespace magpie::http {
namespace {

using namespace std::chrono_literals;
using support::eventually;

struct Site {
  Site() = default;
  void start() {
    server.listen("127.0.0.1:0");
    root = "http://" + server.local_address().to_string();
    served = spawn([this] { server.serve(); });
  }
  ~Site() { server.shutdown(0s); }
  Server server;
  std::string root;
  JoinHandle<void> served;
};

// Says fixed bytes to whoever connects, once it has heard the end of a head, and closes.
class Sayer {
 public:
  explicit Sayer(std::string bytes) : bytes_(std::move(bytes)) {
    root = "http://" + listener_.local_address().to_string();
    served_ = spawn([this] {
      try {
        for (;;) {
          net::TcpConn conn = listener_.accept();
          ++connections;
          std::string heard;
          char some[1000];
          while (heard.find("\r\n\r\n") == std::string::npos) {
            std::size_t n = conn.read(std::as_writable_bytes(std::span(some)));
            if (n == 0) break;
            heard.append(some, n);
          }
          conn.write(bytes_);
          conn.shutdown_write();
          while (conn.read(std::as_writable_bytes(std::span(some))) > 0) {
          }
        }
      } catch (const std::system_error&) {
      }
    });
  }
  ~Sayer() {
    listener_.close();
    served_.join();
  }
  std::string root;
  std::atomic<int> connections{0};

 private:
  std::string bytes_;
  net::TcpListener listener_ = net::TcpListener::bind("127.0.0.1:0");
  JoinHandle<void> served_;
};

RT_TEST(HttpClient, RequestsAndRepliesArriveWhole) {
  Site site;
  site.server.handle("/echo/{name}", [](Request& req, Response& res) {
    res.status(201)
        .header("X-Method", req.method())
        .header("X-Query", req.query("q"))
        .header("X-Sent", req.header("x-mine"));
    res.send(req.param("name") + ":" + req.body());
  });
  site.start();
  Client client;
  Reply reply = client.get(site.root + "/echo/Ada?q=1");
  EXPECT_EQ(reply.status, 201);
  EXPECT_EQ(reply.body, "Ada:");
  EXPECT_EQ(reply.header("x-method"), "GET");
  EXPECT_EQ(reply.header("X-Query"), "1");
  EXPECT_EQ(reply.header("None"), "");
  reply = client.request("PATCH", site.root + "/echo/Bob", {{"X-Mine", "yes"}}, "body");
  EXPECT_EQ(reply.body, "Bob:body");
  EXPECT_EQ(reply.header("X-Sent"), "yes");
  EXPECT_EQ(client.post(site.root + "/echo/C", std::string(1'000'000, 'x')).body,
            "C:" + std::string(1'000'000, 'x'));
  EXPECT_EQ(client.request("HEAD", site.root + "/echo/D").body, "");
  EXPECT_EQ(client.get(site.root + "/none").status, 404);
}

RT_TEST(HttpClient, AConnectionIsUsedAgain) {
  Site site;
  std::atomic<int> handled{0};
  site.server.handle("GET /", [&](Request& req, Response& res) {
    ++handled;
    res.send(req.remote_address());
  });
  site.server.handle("GET /chunks", [](Request& req, Response& res) {
    res.write(req.remote_address());
    res.flush();
  });
  site.start();
  Client client;
  const std::string first = client.get(site.root).body;
  EXPECT_EQ(client.idle_connections(), 1u);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(client.get(site.root).body, first);
    EXPECT_EQ(client.get(site.root + "/chunks").body, first);
    EXPECT_EQ(client.get(site.root + "/none").status, 404);
  }
  EXPECT_EQ(client.idle_connections(), 1u);
  EXPECT_NE(client.get(site.root, {{"Connection", "close"}}).status, 0);
  EXPECT_EQ(client.idle_connections(), 0u);
  EXPECT_NE(client.get(site.root).body, first);
  client.close_idle_connections();
  EXPECT_EQ(client.idle_connections(), 0u);
}

RT_TEST(HttpClient, LeavesNoTimerBehind) {
  Site site;
  site.server.handle("GET /", [](Request&, Response& res) { res.send("hello"); });
  site.start();
  {
    Client client(ClientOptions{.idle_timeout = 1h});
    EXPECT_EQ(client.get(site.root + "/").body, "hello");
    EXPECT_EQ(client.idle_connections(), 1u);
  }
  EXPECT_TRUE(eventually([&] { return stats().timers == 0; }, 5s));
}

RT_TEST(HttpClient, ManyAskAtOnceAndSomeConnectionsAreKept) {
  Site site;
  site.server.handle("GET /{n}", [](Request& req, Response& res) {
    yield();
    res.send(req.param("n"));
  });
  site.start();
  Client client(ClientOptions{.max_idle_per_host = 4});
  WaitGroup all;
  for (int i = 0; i < 30; ++i) {
    all.go([&, i] {
      for (int n = 0; n < 10; ++n) {
        EXPECT_EQ(client.get(site.root + "/" + std::to_string(i * 100 + n)).body,
                  std::to_string(i * 100 + n));
      }
    });
  }
  all.wait();
  EXPECT_GE(client.idle_connections(), 1u);
  EXPECT_LE(client.idle_connections(), 4u);
}

RT_TEST(HttpClient, AConnectionThatTheServerHasClosedIsNotNoticed) {
  Site site;
  site.server.handle("GET /", [](Request&, Response& res) { res.send("hello"); });
  site.start();
  Client client;
  EXPECT_EQ(client.get(site.root).body, "hello");
  site.server.shutdown(0s);
  Site other;  // at the same address
  other.server.handle("GET /", [](Request&, Response& res) { res.send("hello again"); });
  other.server.listen(site.root.substr(7));
  other.served = spawn([&] { other.server.serve(); });
  EXPECT_EQ(client.get(site.root).body, "hello again");
}

RT_TEST(HttpClient, RedirectsAreFollowed) {
  Site site, other;
  site.server.handle("GET /{n}", [](Request& req, Response& res) {
    int n = std::stoi(req.param("n"));
    if (n == 0) return res.send("there, " + req.header("authorization"));
    res.status(302).header("Location", std::to_string(n - 1)).send("not here");
  });
  site.server.handle("POST /see/{status}", [](Request& req, Response& res) {
    res.status(std::stoi(req.param("status"))).header("Location", "/seen").send();
  });
  site.server.handle(
      "/seen", [](Request& req, Response& res) { res.send(req.method() + " " + req.body()); });
  site.start();
  other.server.handle("GET /away", [&](Request&, Response& res) {
    res.status(301).header("Location", site.root + "/1").send();
  });
  other.start();
  Client client;
  const Headers secret{{"Authorization", "mine"}};
  Reply reply = client.get(site.root + "/5", secret);
  EXPECT_EQ(reply.body, "there, mine");
  EXPECT_EQ(reply.url, site.root + "/0");
  EXPECT_EQ(client.get(other.root + "/away", secret).body, "there, ");  // not for another server
  EXPECT_EQ(client.get(site.root + "/10").status, 200);
  EXPECT_THROW(client.get(site.root + "/11"), ProtocolError);
  EXPECT_EQ(client.post(site.root + "/see/302", "body").body, "GET ");
  EXPECT_EQ(client.post(site.root + "/see/303", "body").body, "GET ");
  EXPECT_EQ(client.post(site.root + "/see/307", "body").body, "POST body");
  EXPECT_EQ(client.post(site.root + "/see/308", "body").body, "POST body");
  Client stays(ClientOptions{.max_redirects = 0});
  EXPECT_EQ(stays.get(site.root + "/5").status, 302);
}

RT_TEST(HttpClient, ARequestThatTakesTooLongFails) {
  Site site;
  Chan<void> leave;
  site.server.handle("GET /", [&](Request&, Response& res) {
    leave.recv();
    res.send("late");
  });
  site.server.handle("GET /drip", [&](Request& req, Response& res) {
    for (;;) {
      res.write("x");
      res.flush();
      if (req.context().cancelled()) return;
      sleep_for(1ms);
    }
  });
  site.start();
  Client client;
  client.set_timeout(30ms);
  for (const char* path : {"/", "/drip"}) {
    try {
      client.get(site.root + path);
      ADD_FAILURE() << "no exception";
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::timed_out) << error.what();
    }
  }
  EXPECT_EQ(client.idle_connections(), 0u);
  leave.close();
}

RT_TEST(HttpClient, ABodyStreamsBothWays) {
  Site site;
  site.server.handle(
      "POST /",
      [](Request& req, Response& res) {
        std::vector<char> some(1000);
        while (std::size_t n = req.read(std::span<char>(some))) {
          res.write(std::string_view(some.data(), n));
          res.flush();
        }
      },
      RouteOptions{.max_body_bytes = 100'000'000});
  site.start();

  struct Numbers : BodySource {
    std::size_t read(std::span<std::byte> into) override {
      if (left == 0) return 0;
      std::string text = std::to_string(left--) + ",";
      std::memcpy(into.data(), text.data(), text.size());
      sent += text;
      return text.size();
    }
    int left = 1000;
    std::string sent;
  } numbers;
  Client client;
  ReplyStream reply = client.open("POST", site.root, {}, numbers);
  EXPECT_EQ(reply.status(), 200);
  EXPECT_EQ(reply.read_all(1'000'000), numbers.sent);
  EXPECT_EQ(client.idle_connections(), 1u);
  // One that is not read to its end is closed.
  { ReplyStream other = client.open("POST", site.root, {}, std::string(100'000, 'x')); }
  EXPECT_EQ(client.idle_connections(), 0u);
}

RT_TEST(HttpClient, BrokenRepliesAreToldFromWholeOnes) {
  struct Case {
    const char* bytes;
    bool throws;
  };
  const Case cases[] = {
      {"HTTP/1.1 200 OK\r\n\r\nuntil the end", false},
      {"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", false},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 X\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: "
       "3\r\n\r\nabc",
       false},
      {"", true},
      {"HTTP/1.1 200 OK\r\nContent-", true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\nabc\r\n0\r\n\r\n", true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc", true},
      {"SSH-2.0-OpenSSH\r\n\r\n", true},
      {"HTTP/2.0 200 OK\r\n\r\n", true},
  };
  for (const Case& one : cases) {
    Sayer sayer(one.bytes);
    Client client;
    if (one.throws) {
      EXPECT_ANY_THROW(client.get(sayer.root)) << one.bytes;
    } else {
      Reply reply;
      EXPECT_NO_THROW(reply = client.get(sayer.root)) << one.bytes;
      EXPECT_EQ(reply.status, 200);
      EXPECT_TRUE(reply.body == "abc" || reply.body == "until the end") << reply.body;
    }
    EXPECT_EQ(sayer.connections, 1);
  }
}

RT_TEST(HttpClient, RepliesThatAreTooLargeAreRefused) {
  Client client(ClientOptions{.max_header_bytes = 1000, .max_body_bytes = 1000});
  {
    Sayer sayer("HTTP/1.1 200 OK\r\nA: " + std::string(1000, 'x') + "\r\n\r\n");
    EXPECT_THROW(client.get(sayer.root), ProtocolError);
  }
  {
    Sayer sayer("HTTP/1.1 200 OK\r\n\r\n" + std::string(1001, 'x'));
    EXPECT_THROW(client.get(sayer.root), ProtocolError);
  }
  {
    Sayer sayer("HTTP/1.1 200 OK\r\n\r\n" + std::string(1000, 'x'));
    EXPECT_EQ(client.get(sayer.root).body.size(), 1000u);
  }
}

RT_TEST(HttpClient, WhatMakesNoSenseIsRefusedBeforeAnythingIsSent) {
  Client client;
  EXPECT_THROW(client.get("nonsense"), std::invalid_argument);
  EXPECT_THROW(client.get("gopher://localhost:1/"), std::invalid_argument);
  EXPECT_THROW(client.get("http://localhost:1/", {{"A", "b\r\nC: d"}}), std::invalid_argument);
  EXPECT_THROW(client.get("http://localhost:1/", {{"Content-Length", "5"}}), std::invalid_argument);
  EXPECT_THROW(client.request("GE T", "http://localhost:1/"), std::invalid_argument);
  EXPECT_THROW(client.request("CONNECT", "http://localhost:1/"), std::invalid_argument);
  EXPECT_THROW(client.get("http://127.0.0.1:1/"), std::system_error);  // nobody there
}

RT_TEST(HttpClient, OldConnectionsAreClosed) {
  Site site;
  site.server.handle("GET /", [](Request&, Response& res) { res.send("hello"); });
  site.start();
  Client client(ClientOptions{.idle_timeout = 20ms});
  client.get(site.root);
  EXPECT_EQ(client.idle_connections(), 1u);
  EXPECT_TRUE(eventually([&] { return client.idle_connections() == 0; }));
}

RT_TEST(HttpClient, ATimeOfZeroIsNoLimit) {
  Site site;
  site.server.handle("GET /", [](Request& req, Response& res) { res.send(req.remote_address()); });
  site.start();
  Client client(ClientOptions{.timeout = 0s, .connect_timeout = 0s, .idle_timeout = 0s});
  const std::string first = client.get(site.root).body;
  for (int i = 0; i < 10; ++i) {
    sleep_for(1ms);  // a kept connection is older than nothing
    EXPECT_EQ(client.get(site.root).body, first);
  }
}

}  // namespace
}  // namespace magpie::http
