// middleware_test.cc: what is done around handlers.

#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net/unix.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <sstream>
#include <string>

#include "support/http_talk.h"
#include "support/rt_test.h"

namespace magpie::http {
namespace {

using namespace std::chrono_literals;
using support::kGet;
using support::Talk;

Middleware adds(const char* text) {
  return [text](Handler next) -> Handler {
    return [text, next](Request& req, Response& res) {
      res.add_header("Way", text);
      next(req, res);
    };
  };
}

RT_TEST(HttpMiddleware, TheFirstOneIsOutermostAndAllSeeWhatHasNoRoute) {
  Server server;
  server.use(adds("one"));
  server.use(adds("two"));
  server.handle("GET /", [](Request&, Response& res) { res.send("x"); });
  server.handle("POST /post", [](Request&, Response& res) { res.send("x"); });
  Talk talk(server);
  talk.say(kGet);
  talk.hear_body();
  EXPECT_NE(talk.head().find("Way: one\r\nWay: two\r\n"), std::string::npos);
  talk.say("GET /post HTTP/1.1\r\nHost: x\r\n\r\n");
  talk.hear_body();
  EXPECT_EQ(talk.status(), 405);
  EXPECT_NE(talk.head().find("Way: one"), std::string::npos);
  EXPECT_NE(talk.head().find("Allow: POST\r\n"), std::string::npos);
}

RT_TEST(HttpMiddleware, HandlersAndMiddlewaresMayBeMoveOnly) {
  Server server;
  server.use([text = std::make_unique<std::string>("moved")](Handler next) -> Handler {
    return [text = std::make_unique<std::string>(*text), next](Request& req, Response& res) {
      res.header("Way", *text);
      next(req, res);
    };
  });
  server.handle("GET /", [count = std::make_unique<int>(0)](Request&, Response& res) {
    res.send(std::to_string(++*count));
  });
  Talk talk(server);
  for (const char* count : {"1", "2"}) {
    talk.say(kGet);
    EXPECT_EQ(talk.hear_body(), count);  // copies share the handler
    EXPECT_NE(talk.head().find("Way: moved\r\n"), std::string::npos);
  }
}

RT_TEST(HttpMiddleware, AServerWhoseMiddlewareThrowsHasNotBegun) {
  Server server;
  bool fails = true;
  server.use([&](Handler next) -> Handler {
    if (std::exchange(fails, false)) throw std::runtime_error("not yet");
    return next;
  });
  EXPECT_THROW(server.serve_connection(nullptr), std::runtime_error);
  server.handle("GET /", [](Request&, Response& res) { res.send("now"); });
  Talk talk(server);
  talk.say(kGet);
  EXPECT_EQ(talk.hear_body(), "now");
}

RT_TEST(HttpMiddleware, AnEmptyHandlerIsRefused) {
  Server server;
  void (*none)(Request&, Response&) = nullptr;
  EXPECT_THROW(server.handle("GET /", none), std::invalid_argument);
  EXPECT_THROW(server.handle("GET /", Handler()), std::invalid_argument);
  EXPECT_THROW(server.handle("GET /", std::function<void(Request&, Response&)>()),
               std::invalid_argument);
  EXPECT_FALSE(Handler(nullptr));
}

RT_TEST(HttpMiddleware, WhoFindsTheServerFullIsAnswered503AtOnce) {
  Server server;
  Chan<void> inside, leave;
  server.use(limit_concurrency(2));
  server.handle("GET /", [&](Request&, Response& res) {
    inside.send();
    leave.recv();
    res.send("done");
  });
  Talk a(server), b(server), c(server);
  a.say(kGet);
  b.say(kGet);
  inside.recv();
  inside.recv();
  for (int i = 0; i < 3; ++i) {
    c.say(kGet);
    c.hear_body();
    EXPECT_EQ(c.status(), 503);
  }
  leave.send();
  leave.send();
  EXPECT_EQ(a.hear_body(), "done");
  EXPECT_EQ(b.hear_body(), "done");
  c.say(kGet);
  inside.recv();
  leave.send();
  EXPECT_EQ(c.hear_body(), "done");
}

RT_TEST(HttpMiddleware, AHandlerThatTakesTooLongIsAnswered503InItsPlace) {
  Server server;
  Chan<void> leave;
  std::atomic<bool> cancelled{false}, threw{false};
  server.use(timeout(20ms));
  server.handle("GET /", [&](Request& req, Response& res) {
    Context context = req.context();
    context.done().recv();
    cancelled = true;
    leave.recv();  // the answer does not wait for us
    try {
      res.send("too late");
    } catch (const std::system_error& error) {
      threw = error.code() == std::errc::timed_out;
      throw;
    }
  });
  Talk talk(server);
  talk.say(kGet);
  EXPECT_EQ(talk.hear_body(), "Service Unavailable\n");
  EXPECT_EQ(talk.status(), 503);
  EXPECT_NE(talk.head().find("Connection: close"), std::string::npos);
  EXPECT_EQ(talk.hear_all(), "");
  leave.send();
  talk.wait_for_server();
  EXPECT_TRUE(cancelled);
  EXPECT_TRUE(threw);
}

// If the connection were closed while the client still sends, the answer might be lost on its way.
RT_TEST(HttpMiddleware, AClientThatIsAnswered503WhileItSendsIsHeardToItsEnd) {
  Server server;
  server.use(timeout(10ms));
  server.handle("POST /", [](Request& req, Response& res) { res.send(req.body()); });
  Talk talk(server, support::MemoryStream::kNoLimit, 1000);
  talk.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx");
  EXPECT_EQ(support::status_of(talk.hear_all()), 503);
  EXPECT_NO_THROW(talk.say(std::string(100'000, 'x')));
  talk.end();
  talk.wait_for_server();
}

RT_TEST(HttpMiddleware, AHandlerThatSwallowsItsTimeOutDoesNotAnswerTwice) {
  Server server;
  server.use(timeout(10ms));
  server.handle("GET /", [](Request& req, Response& res) {
    req.context().done().recv();
    try {
      res.send("too late");
    } catch (const std::system_error&) {
    }
  });
  server.handle("GET /silent", [](Request& req, Response&) { req.context().done().recv(); });
  for (const char* path : {"/", "/silent"}) {
    Talk talk(server);
    talk.say(std::string("GET ") + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
    std::string all = talk.hear_all();
    EXPECT_EQ(support::status_of(all), 503);
    EXPECT_TRUE(all.ends_with("\r\n\r\nService Unavailable\n")) << all;
  }
}

RT_TEST(HttpMiddleware, AHandlerInTheMiddleOfItsBodyIsCutOffByTheTimeOut) {
  Server server;
  server.use(timeout(20ms));
  server.handle("GET /", [](Request& req, Response& res) {
    res.write("some");
    res.flush();
    req.context().done().recv();
    for (;;) {
      res.write("more");
      res.flush();
    }
  });
  Talk talk(server);
  talk.say(kGet);
  std::string all = talk.hear_all();
  EXPECT_EQ(support::status_of(all), 200);
  EXPECT_FALSE(all.ends_with("0\r\n\r\n"));
}

RT_TEST(HttpMiddleware, AConnectionThatWasAnnouncedAsKeptIsKeptAlthoughTheTimeIsUp) {
  Server server;
  server.use(timeout(5ms));
  server.handle("POST /", [](Request& req, Response& res) {
    Context context = req.context();
    res.send(req.body());
    context.done().recv();  // the time is up when all has been said
  });
  Talk talk(server);
  for (int i = 0; i < 5; ++i) {
    talk.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
    EXPECT_EQ(talk.hear_body(), "hi");
    EXPECT_EQ(talk.head().find("Connection: close"), std::string::npos);
  }
}

RT_TEST(HttpMiddleware, AHandlerInTimeDoesNotFeelTheTimeOut) {
  Server server;
  server.use(timeout(40s));
  server.handle("GET /", [](Request&, Response& res) { res.send("in time"); });
  server.handle("POST /", [](Request& req, Response& res) { res.write(req.body()); });
  Talk talk(server);
  for (int i = 0; i < 10; ++i) {
    talk.say(kGet);
    EXPECT_EQ(talk.hear_body(), "in time");
    talk.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
    EXPECT_EQ(talk.hear_body(), "hi");
  }
}

RT_TEST(HttpMiddleware, TheAccessLogHasALineForEachRequest) {
  std::ostringstream out;
  {
    Server server(ServerOptions{.on_error = [](const Request&, std::exception_ptr) {}});
    server.use(access_log(out));
    server.handle("GET /", [](Request&, Response& res) { res.send("12345"); });
    server.handle("GET /throw", [](Request&, Response&) { throw 1; });
    Talk talk(server);
    talk.say(
        "GET /?a=\"b HTTP/1.1\r\nHost: x\r\n\r\nGET /none HTTP/1.1\r\nHost: x\r\n\r\nGET /throw "
        "HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(talk.hear_body(), "12345");
    talk.hear_body();
    EXPECT_EQ(talk.status(), 404);
    talk.hear_body();
    EXPECT_EQ(talk.status(), 500);
    talk.close();
    talk.wait_for_server();
  }
  std::string lines = out.str();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3) << lines;
  EXPECT_NE(lines.find("\"GET /?a=\\x22b HTTP/1.1\" 200 5 "), std::string::npos) << lines;
  EXPECT_NE(lines.find("\"GET /none HTTP/1.1\" 404 10 "), std::string::npos) << lines;
  EXPECT_NE(lines.find("\"GET /throw HTTP/1.1\" 500 22 "), std::string::npos) << lines;
}

RT_TEST(HttpMiddleware, TheAccessLogTellsWhatTheTimerAnswered) {
  std::ostringstream out;
  {
    Server server;
    server.use(access_log(out));
    server.use(timeout(10ms));
    server.handle("GET /", [](Request& req, Response&) { req.context().done().recv(); });
    for (const char* method : {"GET", "HEAD"}) {
      Talk talk(server);
      talk.say(std::string(method) + " / HTTP/1.1\r\nHost: x\r\n\r\n");
      EXPECT_EQ(support::status_of(talk.hear_all()), 503);
      talk.wait_for_server();
    }
  }
  const std::string lines = out.str();
  EXPECT_NE(lines.find("\"GET / HTTP/1.1\" 503 20 "), std::string::npos) << lines;
  EXPECT_NE(lines.find("\"HEAD / HTTP/1.1\" 503 0 "), std::string::npos) << lines;
}

RT_TEST(HttpMiddleware, AClientOfAUnixSocketForgesNoLineOfTheAccessLog) {
  const std::string mine = "magpie-log-" + std::to_string(::getpid());
  // Names in the abstract space have any bytes.
  const std::string its = "x\n1.2.3.4 - - forged " + mine;
  auto listener = net::UnixListener::bind("@" + mine);
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  std::memcpy(name.sun_path + 1, its.data(), its.size());
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + its.size());
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&name), size), 0);
  sockaddr_un to{.sun_family = AF_UNIX, .sun_path = {}};
  std::memcpy(to.sun_path + 1, mine.data(), mine.size());
  ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&to),
                      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + mine.size())),
            0);
  auto client = net::UnixConn::adopt(fd);
  client.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  std::ostringstream out;
  Server server;
  server.use(access_log(out));
  server.serve_connection(std::make_unique<net::UnixConn>(listener.accept()));
  const std::string lines = out.str();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << lines;
  EXPECT_TRUE(lines.starts_with("@x\\x0A1.2.3.4\\x20-")) << lines;
}

RT_TEST(HttpMiddleware, TheAccessLogHasALineForEachRequestThatWasRefused) {
  std::ostringstream out;
  {
    Server server(ServerOptions{.max_header_bytes = 200,
                                .max_header_fields = 4,
                                .max_body_bytes = 10,
                                .header_timeout = 20ms});
    server.use(access_log(out));
    for (const char* request :
         {"GET\r\n\r\n", "GET /\x1b[31m HTTP/1.1\r\nHost: x\r\n\r\n",
          "GET /two HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
          "GET /many HTTP/1.1\r\nHost: x\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\n\r\n",
          "GET /new HTTP/1.7\r\nHost: x\r\n\r\n"})
      (void)support::answer_to(server, request);
    Talk slow(server);
    slow.say("GET /slow HTTP/1.1\r\nHo");
    slow.hear_all();
    (void)support::answer_to(server, "GET /" + std::string(300, 'x') + " HTTP/1.1\r\n");
  }
  const std::string lines = out.str();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 7) << lines;
  for (const char* line : {"\"-\" 400 ", "\"GET /two HTTP/1.1\" 400 ",
                           "\"GET /many HTTP/1.1\" 431 ", "\" 505 ", "\" 408 ", "\" 414 "})
    EXPECT_NE(lines.find(line), std::string::npos) << line << " in\n" << lines;
}

RT_TEST(HttpMiddleware, ASlowBodyHoldsNoPlace) {
  Server server;
  Chan<void> slow_came(1);
  server.use([slow_came](Handler next) -> Handler {
    return [=](Request& req, Response& res) {
      if (req.content_length() == 5u) slow_came.send();
      next(req, res);
    };
  });
  server.use(limit_concurrency(1));
  server.handle("POST /", [](Request& req, Response& res) {
    std::string all;
    char some[3];
    while (std::size_t n = req.read(std::span<char>(some))) all.append(some, n);
    res.send(all);
  });
  server.handle("GET /", [](Request& req, Response& res) { res.send("free" + req.body()); });
  Talk slow(server), quick(server);
  slow.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel");
  slow_came.recv();
  for (int i = 0; i < 10; ++i) {
    quick.say(kGet);
    EXPECT_EQ(quick.hear_body(), "free");
    quick.say(
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
    EXPECT_EQ(quick.hear_body(), "hi");
  }
  slow.say("lo");
  EXPECT_EQ(slow.hear_body(), "hello");
}

}  // namespace
}  // namespace magpie::http
