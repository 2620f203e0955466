// server_test.cc: requests and responses, over a connection in memory.

#include <magpie/http.h>
#include <magpie/magpie.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "support/http_talk.h"
#include "support/rt_test.h"

namespace magpie::http {
namespace {

using support::answer_to;
using support::status_of;
using support::Talk;

constexpr const char* kEnd = "Host: x\r\nConnection: close\r\n\r\n";

std::string body_of(const std::string& answer) {
  std::size_t at = answer.find("\r\n\r\n");
  return at == std::string::npos ? "<none>" : answer.substr(at + 4);
}

RT_TEST(HttpServer, AHandlerSeesThePartsOfARequestAndItsBodyIsSent) {
  Server server;
  server.handle("POST /a/{name}/b/{rest...}", [](Request& req, Response& res) {
    res.header("X-Seen", req.header("x-thing"));
    res.send(req.method() + " " + req.path() + " " + req.param("name") + " " + req.param("rest") +
             " " + req.query("q") + " " + req.query("none") + "|" + req.body());
  });
  std::string answer = answer_to(
      server,
      "POST /a/J%c3%bcrgen/b/c%2fd/e?x=1&q=a+b%21 HTTP/1.1\r\nHost: x\r\nX-Thing: it is\r\n"
      "Content-Length: 5\r\nConnection: close\r\n\r\nhello");
  EXPECT_EQ(status_of(answer), 200);
  EXPECT_NE(answer.find("\r\nX-Seen: it is\r\n"), std::string::npos);
  EXPECT_NE(answer.find("\r\nDate: "), std::string::npos);
  EXPECT_NE(answer.find("\r\nConnection: close\r\n"), std::string::npos);
  EXPECT_EQ(body_of(answer), "POST /a/J\u00fcrgen/b/c/d/e J\u00fcrgen c/d/e a b! |hello");
}

RT_TEST(HttpServer, ItDoesNotMatterHowTheBytesArrive) {
  Server server;
  server.handle("POST /echo", [](Request& req, Response& res) { res.send(req.body()); });
  const std::string request =
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: x\r\n\r\n"
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\nend";
  for (std::size_t at_once : {1, 2, 3, 7, 100, 1000}) {
    std::string answer = answer_to(server, request, at_once);
    EXPECT_EQ(status_of(answer), 200) << at_once;
    EXPECT_NE(answer.find("\r\n\r\nhello!HTTP/1.1 200 OK"), std::string::npos) << at_once << answer;
    EXPECT_TRUE(answer.ends_with("\r\n\r\nend")) << at_once << answer;
  }
}

RT_TEST(HttpServer, AConnectionIsKeptForFurtherRequests) {
  Server server;
  server.handle("GET /{n}", [](Request& req, Response& res) { res.send(req.param("n")); });
  Talk talk(server);
  for (int i = 0; i < 20; ++i) {
    talk.say("GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(talk.hear_body(), std::to_string(i));
  }
  // HTTP/1.0 has to ask for that.
  talk.say("GET /10 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(talk.hear_body(), "10");
  EXPECT_NE(talk.head().find("Connection: keep-alive"), std::string::npos);
  talk.say("GET /last HTTP/1.0\r\n\r\n");
  EXPECT_EQ(talk.hear_body(), "last");
  EXPECT_EQ(talk.hear_all(), "");
}

// At one P, without preemption: whoever waits here gets a turn only when the connection gives way.
RT_TEST(HttpServer, CloseCountsWhereverItStandsInAListOfOptions) {
  Server server;
  server.handle("GET /", [](Request&, Response& res) { res.send("kept"); });
  server.handle("GET /close", [](Request&, Response& res) {
    res.header("Connection", "x-mine, Close").send("closed");
  });
  const auto answers = [&](std::string_view head) {
    const std::string answer = answer_to(server, std::string(head) + std::string(head));
    return 1 + static_cast<int>(answer.find("HTTP/1.1 200", 1) != std::string::npos);
  };
  EXPECT_EQ(answers("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), 2);
  for (const char* head : {"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n",
                           "GET / HTTP/1.0\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n",
                           "GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive,\t CLOSE ,\r\n\r\n",
                           "GET /close HTTP/1.1\r\nHost: x\r\n\r\n"}) {
    EXPECT_EQ(answers(head), 1) << head;
  }
}

TEST(HttpServer, APeerWhoseNextRequestIsAlwaysThereGivesWayToOthers) {
  run(Options{.procs = 1, .preempt = false}, [] {
    constexpr int kRequests = 300;
    int served = 0, before = 0, most = 0;
    Server server;
    server.handle("GET /", [&](Request&, Response& res) {
      ++served;
      res.send("x");
    });
    std::string requests;
    for (int i = 0; i < kRequests; ++i) requests += "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    Talk talk(server);
    talk.say(requests);
    talk.end();
    while (served < kRequests) {
      yield();
      most = std::max(most, served - std::exchange(before, served));
    }
    EXPECT_LE(most, 16);
    EXPECT_EQ(status_of(talk.hear_all()), 200);
  });
}

// The same for a head and a body that come byte by byte, and are always there.
TEST(HttpServer, APeerWhoseNextByteIsAlwaysThereGivesWayToOthers) {
  run(Options{.procs = 1, .preempt = false}, [] {
    constexpr int kBytes = 500;
    std::atomic<bool> begun{false}, served{false};
    Server server;
    server.handle("POST /", [&](Request& req, Response& res) {
      begun = true;
      char byte[1];
      while (req.read(std::span(byte)) > 0) {
      }
      served = true;
      res.send("x");
    });
    Talk talk(server, 1);
    talk.say("POST / HTTP/1.1\r\nHost: x\r\nX: " + std::string(kBytes, 'x') +
             "\r\nContent-Length: " + std::to_string(kBytes) + "\r\n\r\n" +
             std::string(kBytes, 'x'));
    talk.end();
    int turns_of_head = 0, turns_of_body = 0;
    while (!begun) {
      ++turns_of_head;
      yield();
    }
    while (!served) {
      ++turns_of_body;
      yield();
    }
    EXPECT_GE(turns_of_head, kBytes);
    EXPECT_GE(turns_of_body, kBytes / 16);
    EXPECT_EQ(status_of(talk.hear_all()), 200);
  });
}

RT_TEST(HttpServer, PipelinedRequestsAreAnsweredInTheirOrder) {
  Server server;
  server.handle("GET /{n}", [](Request& req, Response& res) {
    if (req.param("n").ends_with('7')) yield();
    res.send(req.param("n"));
  });
  constexpr int kRequests = 200;
  std::string requests;
  for (int i = 0; i < kRequests; ++i)
    requests += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n";
  Talk talk(server);
  talk.say(requests);
  for (int i = 0; i < kRequests; ++i) EXPECT_EQ(talk.hear_body(), std::to_string(i));
}

RT_TEST(HttpServer, ARequestThatWaitsForNobodyIsAnsweredWithOneWrite) {
  Server server;
  server.handle("GET /",
                [](Request&, Response& res) { res.header("A", "b").send(std::string(3000, 'x')); });
  auto [mine, its] = support::MemoryStream::pair();
  support::MemoryStream& served = *its;
  auto serving =
      spawn([&server, its = std::move(its)]() mutable { server.serve_connection(std::move(its)); });
  for (int i = 1; i <= 3; ++i) {
    mine->write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    char bytes[8192];
    std::size_t n = 0;
    while (n < 3000) n += mine->read(std::as_writable_bytes(std::span(bytes).subspan(n)));
    EXPECT_EQ(served.writes(), i);
  }
  mine->close();
  serving.join();
}

RT_TEST(HttpServer, HeadIsAnsweredByGetWithoutTheBody) {
  Server server;
  server.handle("GET /", [](Request&, Response& res) { res.send("12345"); });
  server.handle("GET /parts", [](Request&, Response& res) {
    res.write("1");
    res.flush();
    res.write("2");
  });
  Talk talk(server);
  talk.say("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(talk.hear_until("\r\n\r\n").find("Content-Length: 5\r\n"), std::string::npos);
  talk.say("HEAD /parts HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(talk.hear_until("\r\n\r\n").find("Content-Length"), std::string::npos);
  talk.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(talk.hear_body(), "12345");
}

RT_TEST(HttpServer, WhatIsWrittenInPartsIsSentInChunks) {
  Server server;
  server.handle("GET /", [](Request&, Response& res) {
    res.write("abc");
    res.flush();
    res.write("0123456789");
    res.write("ABCDEF");
  });
  std::string answer = answer_to(server, std::string("GET / HTTP/1.1\r\n") + kEnd);
  EXPECT_NE(answer.find("Transfer-Encoding: chunked\r\n"), std::string::npos);
  EXPECT_EQ(body_of(answer), "3\r\nabc\r\n10\r\n0123456789ABCDEF\r\n0\r\n\r\n");
  // HTTP/1.0 knows no chunks: the end of the connection is the end of the body.
  answer = answer_to(server, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(body_of(answer), "abc0123456789ABCDEF");
}

RT_TEST(HttpServer, LittleThatIsWrittenWithoutFlushHasALength) {
  Server server;
  server.handle("GET /", [](Request&, Response& res) {
    res.write("abc");
    res.write("def");
  });
  server.handle("GET /known", [](Request&, Response& res) {
    res.header("Content-Length", "20000");
    for (int i = 0; i < 20; ++i) res.write(std::string(1000, 'x'));
  });
  server.handle("GET /nothing", [](Request&, Response&) {});
  Talk talk(server);
  talk.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(talk.hear_body(), "abcdef");
  talk.say("GET /known HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(talk.hear_body(), std::string(20000, 'x'));
  EXPECT_EQ(talk.head().find("chunked"), std::string::npos);
  talk.say("GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(talk.hear_body(), "");
  EXPECT_EQ(talk.status(), 200);
  EXPECT_NE(talk.head().find("Content-Length: 0"), std::string::npos);
}

RT_TEST(HttpServer, AFlushedPartIsSeenBeforeTheHandlerEnds) {
  Server server;
  Chan<void> go_on;
  server.handle("GET /", [&](Request&, Response& res) {
    res.write("first");
    res.flush();
    go_on.recv();
    res.write("second");
  });
  Talk talk(server);
  talk.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  talk.hear_until("5\r\nfirst\r\n");
  go_on.send();
  EXPECT_EQ(talk.hear_until("0\r\n\r\n"), "6\r\nsecond\r\n0\r\n\r\n");
}

RT_TEST(HttpServer, SendIsSeenBeforeTheHandlerEnds) {
  Server server;
  Chan<void> go_on;
  server.handle("GET /", [&](Request&, Response& res) {
    res.send("sent");
    go_on.recv();
  });
  Talk talk(server);
  talk.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(talk.hear_body(), "sent");
  go_on.send();
}

RT_TEST(HttpServer, ABodyCanBeReadAsItComes) {
  Server server;
  Chan<std::string> seen(100);
  server.handle("POST /", [&](Request& req, Response& res) {
    char bytes[3];
    std::size_t total = 0;
    while (std::size_t n = req.read(std::span<char>(bytes))) {
      seen.send(std::string(bytes, n));
      total += n;
    }
    EXPECT_EQ(req.read(std::span<char>(bytes)), 0u);
    res.send(std::to_string(total));
  });
  Talk talk(server);
  talk.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
  EXPECT_EQ(seen.recv(), "ab");
  talk.say("cde");
  EXPECT_EQ(seen.recv(), "cde");
  EXPECT_EQ(talk.hear_body(), "5");
  talk.say("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
  EXPECT_EQ(seen.recv(), "ab");
  talk.say("1\r\nc\r\n0\r\n\r\n");
  EXPECT_EQ(seen.recv(), "c");
  EXPECT_EQ(talk.hear_body(), "3");
}

RT_TEST(HttpServer, LargeBodiesGoBothWays) {
  Server server;
  server.handle("POST /echo", [](Request& req, Response& res) { res.send(req.body()); });
  server.handle("POST /stream", [](Request& req, Response& res) {
    std::vector<char> bytes(10'000);
    while (std::size_t n = req.read(std::span<char>(bytes)))
      res.write(std::string_view(bytes.data(), n));
  });
  std::string large;
  for (int i = 0; large.size() < 1'000'000; ++i) large += std::to_string(i) + ",";
  Talk talk(server, 5000, 20'000);
  auto said = spawn([&] {
    talk.say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(large.size()) +
             "\r\n\r\n" + large);
  });
  EXPECT_TRUE(talk.hear_body() == large);
  said.join();
  said = spawn([&] {
    talk.say("POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(large.size()) +
             "\r\n\r\n" + large);
  });
  std::string answer = talk.hear_until("\r\n0\r\n\r\n");
  EXPECT_GT(answer.size(), large.size());
  said.join();
}

RT_TEST(HttpServer, AClientThatWaitsToSendItsBodyIsToldToContinueWhenItIsRead) {
  Server server;
  server.handle("POST /read", [](Request& req, Response& res) { res.send(req.body()); });
  server.handle("POST /ignore", [](Request&, Response& res) { res.status(403).send("no"); });
  {
    Talk talk(server);
    talk.say("POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_EQ(talk.hear_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    talk.say("ok");
    EXPECT_EQ(talk.hear_body(), "ok");
    talk.say("POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nok");
    EXPECT_EQ(talk.hear_body(), "ok");
  }
  // Who is not told does not send, so the connection cannot go on.
  Talk talk(server);
  talk.say("POST /ignore HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(talk.hear_body(), "no");
  EXPECT_NE(talk.head().find("Connection: close"), std::string::npos);
  EXPECT_EQ(talk.hear_all(), "");
  EXPECT_EQ(status_of(answer_to(server, "POST /read HTTP/1.1\r\nHost: x\r\nExpect: more\r\n\r\n")),
            417);
}

RT_TEST(HttpServer, ABodyThatNobodyReadIsPassedOver) {
  Server server;
  server.handle("POST /", [](Request&, Response& res) { res.send("answer"); });
  Talk talk(server);
  talk.say(
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nGET /POST / HTTP/1.1\r\nHost: "
      "x\r\n\r\n");
  EXPECT_EQ(talk.hear_body(), "answer");
  EXPECT_EQ(talk.hear_body(), "answer");
  talk.say("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
  EXPECT_EQ(talk.hear_body(), "answer");
  // But not a long one.
  talk.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_EQ(talk.hear_body(), "answer");
  EXPECT_NE(talk.head().find("Connection: close"), std::string::npos);
  talk.end();
  EXPECT_EQ(talk.hear_all(), "");
}

RT_TEST(HttpServer, AnExceptionIsAnsweredWith500AndReported) {
  std::atomic<int> reported{0};
  Server server(ServerOptions{.on_error = [&](const Request& req, std::exception_ptr) {
    EXPECT_EQ(req.path(), "/throw");
    ++reported;
  }});
  server.handle("GET /throw", [](Request&, Response& res) {
    res.status(201).header("A", "b").write("forgotten");
    throw std::runtime_error("secret");
  });
  server.handle("GET /status",
                [](Request&, Response&) { throw StatusError(418, "short and stout"); });
  server.handle("GET /bad", [](Request&, Response& res) { res.header("A", "b\r\nC: d"); });
  Talk talk(server);
  talk.say("GET /throw HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(talk.hear_body(), "Internal Server Error\n");
  EXPECT_EQ(talk.status(), 500);
  EXPECT_EQ(talk.head().find("A: b"), std::string::npos);
  EXPECT_EQ(reported, 1);
  talk.say("GET /status HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(talk.hear_body(), "short and stout\n");
  EXPECT_EQ(talk.status(), 418);
  EXPECT_EQ(reported, 1);  // that was no accident
}

RT_TEST(HttpServer, AnExceptionInTheMiddleOfABodyEndsTheConnectionWithoutItsEnd) {
  Server server(ServerOptions{.on_error = [](const Request&, std::exception_ptr) {}});
  server.handle("GET /", [](Request&, Response& res) {
    res.write("abc");
    res.flush();
    throw std::runtime_error("too late");
  });
  std::string answer = answer_to(server, std::string("GET / HTTP/1.1\r\n") + kEnd);
  EXPECT_TRUE(answer.ends_with("3\r\nabc\r\n")) << answer;
}

RT_TEST(HttpServer, MisuseOfAResponseThrows) {
  Server server;
  server.handle("GET /", [](Request&, Response& res) {
    EXPECT_THROW(res.status(99), std::invalid_argument);
    EXPECT_THROW(res.status(100), std::invalid_argument);
    EXPECT_THROW(res.header("Bad name", "x"), std::invalid_argument);
    EXPECT_THROW(res.header("Name", "x\r\ny: z"), std::invalid_argument);
    EXPECT_THROW(res.header("Transfer-Encoding", "chunked"), std::invalid_argument);
    EXPECT_THROW(res.header("Content-Length", "many"), std::invalid_argument);
    res.header("Once", "1").header("once", "2").add_header("Twice", "1").add_header("Twice", "2");
    res.send("x");
    EXPECT_THROW(res.send("y"), std::logic_error);
    EXPECT_THROW(res.write("y"), std::logic_error);
    EXPECT_THROW(res.status(200), std::logic_error);
    EXPECT_THROW(res.header("A", "b"), std::logic_error);
  });
  std::string answer = answer_to(server, std::string("GET / HTTP/1.1\r\n") + kEnd);
  EXPECT_EQ(answer.find("Once: 1"), std::string::npos);
  EXPECT_NE(answer.find("once: 2\r\nTwice: 1\r\nTwice: 2\r\n"), std::string::npos);
  EXPECT_EQ(body_of(answer), "x");
}

RT_TEST(HttpServer, NoContentAndNotModifiedHaveNoBody) {
  Server server;
  server.handle("GET /{status}", [](Request& req, Response& res) {
    res.status(std::stoi(req.param("status"))).send("body");
  });
  Talk talk(server);
  for (const char* status : {"204", "304"}) {
    talk.say(std::string("GET /") + status + " HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(talk.hear_until("\r\n\r\n").starts_with(std::string("HTTP/1.1 ") + status));
  }
  talk.say("GET /200 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(talk.hear_body(), "body");
}

// A client whose next requests are there as soon as they are read, so many at once. Its socket,
// which nobody writes to, says that nothing is here.
class Eager final : public net::Stream {
 public:
  Eager(int requests, int at_once) : left_(requests), at_once_(at_once) {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_), 0);
  }
  ~Eager() override {
    for (int socket : sockets_) ::close(socket);
  }
  int native_handle() const noexcept override { return sockets_[0]; }
  std::size_t read(std::span<std::byte> into) override {
    constexpr std::string_view kRequest = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    std::size_t size = 0;
    for (int i = 0; i < at_once_ && left_ > 0; ++i, --left_) {
      std::memcpy(into.data() + size, kRequest.data(), kRequest.size());
      size += kRequest.size();
    }
    return size;
  }
  void write_parts(Parts) override {}
  void shutdown_write() override {}
  void close() noexcept override {}

 private:
  void do_set_read_deadline(TimePoint) noexcept override {}
  void do_set_write_deadline(TimePoint) noexcept override {}
  int left_;
  const int at_once_;
  int sockets_[2] = {-1, -1};
};

// How often others have run between two of the requests.
int turns_of_others(int requests, int at_once) {
  int between = 0;
  run(Options{.procs = 1}, [&] {
    std::atomic<bool> over = false;
    std::atomic<long> turns = 0;
    WaitGroup other;
    other.go([&] {
      while (!over) {
        ++turns;
        yield();
      }
    });
    Server server;
    long seen = 0;
    server.handle("GET /", [&](Request&, Response& res) {
      if (seen != turns) ++between;
      seen = turns;
      res.send("hello");
    });
    server.serve_connection(std::make_unique<Eager>(requests, at_once));
    over = true;
    other.wait();
  });
  return between;
}

TEST(HttpServer, AClientThatPipelinesGivesWayToOthers) {
  EXPECT_GT(turns_of_others(1600, 32), 1600 / 32);
}

// Nothing of it is here when it has been answered. If its goroutine yielded then, the next request
// would find it behind all that are busy, and not among those that the network wakes. A few turns
// are those of the monitor, which stops goroutines that run for long.
TEST(HttpServer, AClientThatWaitsForItsAnswersGivesWayToNobody) {
  EXPECT_LT(turns_of_others(1600, 1), 1600 / 32);
}

// Buffers go from one connection to the next.
RT_TEST(HttpServer, AnAnswerThatAVanishedClientDidNotTakeReachesNobodyElse) {
  Server server;
  Chan<void> asked, gone;
  server.handle("GET /secret/{how}", [=](Request& req, Response& res) {
    asked.send();
    gone.recv();
    if (req.param("how") == "send") {
      res.send("secret");
    } else {
      res.write("secret");
      res.flush();
    }
  });
  server.handle("GET /", [](Request&, Response& res) { res.send("hello"); });
  for (const char* how : {"send", "flush"}) {
    Talk vanishing(server);
    vanishing.say(std::string("GET /secret/") + how + " HTTP/1.1\r\nHost: x\r\n\r\n");
    asked.recv();
    vanishing.close();
    gone.send();
    vanishing.wait_for_server();
    std::string answer = answer_to(server, std::string("GET / HTTP/1.1\r\n") + kEnd);
    EXPECT_EQ(answer.find("secret"), std::string::npos) << answer;
    EXPECT_EQ(body_of(answer), "hello");
  }
}

}  // namespace
}  // namespace magpie::http
