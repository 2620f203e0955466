// limits_test.cc: what is too much or too slow is refused, and nobody is kept waiting by it.

#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "support/http_talk.h"
#include "support/rt_test.h"

namespace magpie::http {
namespace {

using namespace std::chrono_literals;
using support::answer_to;
using support::eventually;
using support::status_of;
using support::Talk;

void add_echo(Server& server) {
  server.handle("POST /echo", [](Request& req, Response& res) { res.send(req.body()); });
  server.handle("GET /", [](Request&, Response& res) { res.send("hello"); });
  server.handle(
      "POST /large",
      [](Request& req, Response& res) { res.send(std::to_string(req.body().size())); },
      RouteOptions{.max_body_bytes = 1000});
}

RT_TEST(HttpLimits, HeadersThatAreTooLargeAreRefused) {
  Server server(ServerOptions{.max_header_bytes = 1000, .max_header_fields = 10});
  add_echo(server);
  const std::string x(1000, 'x');
  for (std::size_t at_once : {support::MemoryStream::kNoLimit, std::size_t{10}}) {
    EXPECT_EQ(status_of(answer_to(server, "GET /" + x + " HTTP/1.1\r\nHost: x\r\n\r\n", at_once)),
              414);
    EXPECT_EQ(status_of(answer_to(server, "GET /" + x, at_once)), 414);
    EXPECT_EQ(
        status_of(answer_to(server, "GET / HTTP/1.1\r\nHost: x\r\nA: " + x + "\r\n\r\n", at_once)),
        431);
    std::string many = "GET / HTTP/1.1\r\nHost: x\r\n";
    for (int i = 0; i < 9; ++i) many += "A: b\r\n";
    EXPECT_EQ(status_of(answer_to(server, many + "\r\n", at_once)), 200);
    EXPECT_EQ(status_of(answer_to(server, many + "A: b\r\n\r\n", at_once)), 431);
    // The sum counts, not a single field.
    std::string sum = "GET / HTTP/1.1\r\nHost: x\r\n";
    for (int i = 0; i < 5; ++i) sum.append("A: ").append(200, 'x').append("\r\n");
    EXPECT_EQ(status_of(answer_to(server, sum + "\r\n", at_once)), 431);
  }
}

RT_TEST(HttpLimits, AHeadMayFillTheLimitExactly) {
  Server server(ServerOptions{.max_header_bytes = 1000});
  add_echo(server);
  std::string head = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nA: ";
  head.append(1000 - 4 - head.size(), 'x').append("\r\n\r\n");
  EXPECT_EQ(head.size(), 1000u);
  EXPECT_EQ(status_of(answer_to(server, head)), 200);
  EXPECT_EQ(status_of(answer_to(server, head, 1)), 200);
  head.insert(head.size() - 4, "x");
  EXPECT_EQ(status_of(answer_to(server, head)), 431);
}

RT_TEST(HttpLimits, BodiesThatAreTooLargeAreRefused) {
  Server server(ServerOptions{.max_body_bytes = 100});
  add_echo(server);
  auto post = [&](const char* path, std::size_t size) {
    return "POST " + std::string(path) +
           " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n" +
           std::string(size, 'x');
  };
  EXPECT_EQ(status_of(answer_to(server, post("/echo", 100))), 200);
  EXPECT_EQ(status_of(answer_to(server, post("/echo", 101))), 413);
  EXPECT_EQ(status_of(answer_to(server, post("/large", 1000))), 200);
  EXPECT_EQ(status_of(answer_to(server, post("/large", 1001))), 413);
  // The body need not be sent to be refused.
  Talk waits(server);
  waits.say(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\nExpect: 100-continue\r\n\r\n");
  waits.hear_body();
  EXPECT_EQ(waits.status(), 413);
  std::string chunks = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 11; ++i) chunks += "a\r\n0123456789\r\n";
  EXPECT_EQ(status_of(answer_to(server, chunks + "0\r\n\r\n")), 413);
  EXPECT_EQ(status_of(answer_to(server,
                                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                                "chunked\r\n\r\nffffffffffffffff\r\n" +
                                    std::string(200, 'x'))),
            413);
}

RT_TEST(HttpLimits, AHeaderThatDripsIsAnswered408) {
  Server server(ServerOptions{.header_timeout = 50ms, .idle_timeout = 50s});
  add_echo(server);
  Talk talk(server);
  talk.say("GET / HTTP/1.1\r\nHost: x\r\n");
  auto drip = spawn([&] {
    try {
      for (;;) {
        talk.say("A: b\r\n");
        sleep_for(1ms);
      }
    } catch (const std::system_error&) {  // closed
    }
  });
  talk.hear_body();
  EXPECT_EQ(talk.status(), 408);
  talk.close();
  talk.wait_for_server();
}

RT_TEST(HttpLimits, AConnectionThatSaysNothingIsClosed) {
  Server server(ServerOptions{.header_timeout = 20ms, .idle_timeout = 20ms, .rest_after = 5ms});
  add_echo(server);
  Talk silent(server);
  EXPECT_EQ(silent.hear_all(), "");
  Talk idle(server);
  idle.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(idle.hear_body(), "hello");
  EXPECT_EQ(idle.hear_all(), "");
}

RT_TEST(HttpLimits, OneEmptyLineBeforeARequestIsPassedOverAndNoOther) {
  Server server(ServerOptions{.idle_timeout = 50s, .rest_after = 1ms});
  add_echo(server);
  Talk talk(server);
  talk.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(talk.hear_body(), "hello");
  talk.say("\r\n");
  sleep_for(30ms);  // likely dormant by now; it must not matter
  talk.say("\r\n");
  EXPECT_EQ(support::status_of(talk.hear_all()), 400);
}

RT_TEST(HttpLimits, AnEmptyLineTakesNothingFromTheTimeOfTheNextHead) {
  constexpr auto kTime = 400ms;
  Server server(ServerOptions{.header_timeout = kTime, .idle_timeout = 50s, .rest_after = 50s});
  add_echo(server);
  Talk talk(server, 1);  // byte by byte
  talk.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(talk.hear_body(), "hello");
  talk.say("\r\n");
  sleep_for(2 * kTime);
  const auto began = std::chrono::steady_clock::now();
  talk.say("GET / HT");
  EXPECT_EQ(support::status_of(talk.hear_all()), 408);
  EXPECT_GE(std::chrono::steady_clock::now() - began, kTime);
}

RT_TEST(HttpLimits, AnEmptyLineIsNoReasonToStayLonger) {
  Server server(ServerOptions{.idle_timeout = 300ms, .rest_after = 100ms});
  add_echo(server);
  Talk talk(server);
  talk.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(talk.hear_body(), "hello");
  talk.say("\r\n");
  EXPECT_EQ(talk.hear_all(), "");
}

RT_TEST(HttpLimits, AnIdleConnectionThatRestsIsServedAsBefore) {
  Server server(ServerOptions{.rest_after = 1ms});
  add_echo(server);
  Talk talk(server);
  for (int i = 0; i < 3; ++i) {
    talk.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(talk.hear_body(), "hello");
    sleep_for(15ms);  // likely dormant by now; it must not matter
  }
}

RT_TEST(HttpLimits, ABodyThatDripsIsAnswered408) {
  Server server(ServerOptions{.body_timeout = 50ms});
  add_echo(server);
  Talk talk(server);
  talk.say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
  auto drip = spawn([&] {
    try {
      for (;;) {
        talk.say("x");
        sleep_for(1ms);
      }
    } catch (const std::system_error&) {
    }
  });
  talk.hear_body();
  EXPECT_EQ(talk.status(), 408);
  talk.close();
  talk.wait_for_server();
}

RT_TEST(HttpLimits, AClientThatDoesNotReadIsCutOff) {
  Server server(ServerOptions{.write_timeout = 20ms});
  std::atomic<bool> failed{false};
  server.handle("GET /", [&](Request&, Response& res) {
    try {
      for (;;) res.write(std::string(10'000, 'x'));
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::timed_out);
      failed = true;
      throw;
    }
  });
  Talk talk(server, support::MemoryStream::kNoLimit, 20'000);
  talk.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  talk.wait_for_server();
  EXPECT_TRUE(failed);
}

RT_TEST(HttpLimits, TheSystemTakesLittleOfAnAnswerThatIsNotRead) {
  Server server(ServerOptions{.write_timeout = 100ms});
  std::atomic<std::size_t> taken{0};
  server.handle("GET /", [&](Request&, Response& res) {
    const std::string part(32 * 1024, 'x');
    for (;;) {
      res.write(part);
      taken += part.size();
    }
  });
  server.listen("127.0.0.1:0");
  WaitGroup serving;
  serving.go([&] { server.serve(); });
  net::TcpConn client = net::TcpConn::connect(server.local_address().to_string());
  client.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return server.connections() == 1 && taken > 0; }));
  EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
  // What lies at the client counts too.
  int client_takes = 0;
  socklen_t size = sizeof client_takes;
  EXPECT_EQ(::getsockopt(client.native_handle(), SOL_SOCKET, SO_RCVBUF, &client_takes, &size), 0);
  EXPECT_LT(taken, static_cast<std::size_t>(client_takes) + 512 * 1024);
  server.shutdown(1s);
  serving.wait();
}

RT_TEST(HttpLimits, AClientThatGoesAwayIsNoError) {
  std::atomic<int> errors{0};
  Server server(ServerOptions{.on_error = [&](const Request&, std::exception_ptr) { ++errors; }});
  add_echo(server);
  server.handle("GET /endless", [](Request&, Response& res) {
    for (;;) res.write(std::string(10'000, 'x'));
  });
  {
    Talk talk(server, support::MemoryStream::kNoLimit, 20'000);
    talk.say("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n");
    talk.hear_until("xxx");
    talk.close();
    talk.wait_for_server();
  }
  {
    Talk talk(server);
    talk.say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf");
    talk.close();
    talk.wait_for_server();
  }
  {
    Talk talk(server);
    talk.say("GET / HT");
    talk.close();
    talk.wait_for_server();
  }
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(server.connections(), 0u);
}

RT_TEST(HttpLimits, ABodyThatEndsTooEarlyIsNotTakenForWhole) {
  Server server;
  std::atomic<int> whole{0};
  server.handle("POST /", [&](Request& req, Response& res) {
    (void)req.body();
    ++whole;
    res.send();
  });
  EXPECT_EQ(
      status_of(answer_to(server, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")),
      400);
  EXPECT_EQ(status_of(answer_to(
                server,
                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")),
            400);
  EXPECT_EQ(whole, 0);
}

RT_TEST(HttpLimits, TrailersHaveTheLimitsOfAHeader) {
  Server server(ServerOptions{.max_header_bytes = 2000, .max_header_fields = 10});
  add_echo(server);
  auto post = [&](const std::string& trailer) {
    return status_of(answer_to(
        server,
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n" +
            trailer + "\r\n"));
  };
  EXPECT_EQ(post("A: b\r\n"), 200);
  EXPECT_EQ(post("A: b\r\n c\r\n"), 400);
  EXPECT_EQ(post("A: " + std::string(1800, 'x') + "\r\n"), 200);
  EXPECT_EQ(post("A: " + std::string(2100, 'x') + "\r\n"), 431);
  std::string many;
  for (int i = 0; i < 11; ++i) many += "A: b\r\n";
  EXPECT_EQ(post(many), 431);
}

RT_TEST(HttpLimits, ABodyThatNobodyReadsIsThrownAwayByTheBytesOfTheWire) {
  Server server;
  server.handle("POST /", [](Request&, Response& res) { res.send("unread"); });
  server.handle("GET /next", [](Request&, Response& res) { res.send("next"); });
  auto answers = [&](int chunks) {
    std::string all = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    const std::string chunk = "10;" + std::string(90, 'x') + "\r\n0123456789abcdef\r\n";
    for (int i = 0; i < chunks; ++i) all += chunk;
    return answer_to(server, all + "0\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n");
  };
  EXPECT_NE(answers(100).find("next"), std::string::npos);
  EXPECT_EQ(answers(1000).find("next"), std::string::npos);  // 16 KB, but 115 KB of the wire
}

RT_TEST(HttpLimits, ABodyOfNothingButChunkHeadersIsRefused) {
  Server server;
  add_echo(server);
  std::string all = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 1000; ++i) all += "1;" + std::string(200, 'x') + "\r\ny\r\n";
  EXPECT_EQ(status_of(answer_to(server, all + "0\r\n\r\n")), 400);
  std::string small = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 20'000; ++i) small += "1\r\ny\r\n";
  EXPECT_EQ(status_of(answer_to(server, small + "0\r\n\r\n")), 200);
}

RT_TEST(HttpLimits, ABodyThatIsTooSlowAsAWholeIsAnswered408) {
  Server server(ServerOptions{.body_timeout = 100ms, .min_bytes_per_second = 1'000'000});
  add_echo(server);
  Talk talk(server);
  talk.say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 409600\r\n\r\n");
  auto drip = spawn([&] {
    try {
      // Each 4 KiB come in time, but at less than half of the rate.
      for (int i = 0; i < 100; ++i) {
        talk.say(std::string(4096, 'x'));
        sleep_for(10ms);
      }
    } catch (const std::system_error&) {
    }
  });
  talk.hear_body();
  EXPECT_EQ(talk.status(), 408);
  talk.close();
  talk.wait_for_server();
}

RT_TEST(HttpLimits, AClientThatReadsTooSlowlyAsAWholeIsCutOff) {
  Server server(ServerOptions{.write_timeout = 100ms, .min_bytes_per_second = 1'000'000});
  std::atomic<bool> failed{false};
  server.handle("GET /", [&](Request&, Response& res) {
    try {
      for (int i = 0; i < 200; ++i) {
        res.write(std::string(1000, 'x'));
        res.flush();
      }
    } catch (const std::system_error&) {
      failed = true;
      throw;
    }
  });
  Talk talk(server, 1000, 1000);
  talk.say("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  try {
    std::byte some[1000];
    while (talk.stream().read(some) > 0) sleep_for(5ms);  // each write is taken in time
  } catch (const std::system_error&) {
  }
  talk.wait_for_server();
  EXPECT_TRUE(failed);
}

RT_TEST(HttpLimits, BodiesTogetherHaveALimitOfMemory) {
  Server server(ServerOptions{.max_body_memory = 300'000});
  Chan<void> inside, leave;
  server.handle("POST /hold", [&](Request& req, Response& res) {
    (void)req.body();
    inside.send();
    leave.recv();
    res.send("held");
  });
  add_echo(server);
  const std::string body(200'000, 'x');
  auto post = [&](const char* path) {
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n" +
           body;
  };
  Talk holds(server);
  holds.say(post("/hold"));
  inside.recv();
  EXPECT_EQ(status_of(answer_to(server, post("/echo"))), 503);
  EXPECT_EQ(
      status_of(answer_to(server, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")),
      200);
  leave.send();
  EXPECT_EQ(holds.hear_body(), "held");
  holds.close();
  holds.wait_for_server();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status_of(answer_to(server, post("/echo"))), 200);
}

RT_TEST(HttpLimits, ABodyThatHasFailedFailsAgain) {
  std::vector<int> statuses;
  auto status_of_body = [](auto read) {
    try {
      read();
      return 0;
    } catch (const StatusError& error) {
      return error.status();
    }
  };
  Server server(ServerOptions{.max_body_bytes = 10, .body_timeout = 50ms});
  server.handle("POST /body", [&](Request& req, Response&) {
    for (int i = 0; i < 2; ++i) statuses.push_back(status_of_body([&] { (void)req.body(); }));
  });
  server.handle("POST /read", [&](Request& req, Response&) {
    char some[100];
    for (int i = 0; i < 2; ++i)
      statuses.push_back(status_of_body([&] { (void)req.read(std::span(some)); }));
  });
  for (const char* path : {"/body", "/read"}) {
    for (auto [body, status] : {std::pair("z\r\n", 400), std::pair("b\r\n12345678901\r\n", 413),
                                std::pair("5\r\n", 408)}) {
      statuses.clear();
      Talk talk(server);
      talk.say(std::string("POST ") + path +
               " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + body);
      (void)talk.hear_body();
      EXPECT_EQ(statuses, std::vector<int>({status, status})) << path;
    }
  }
}

RT_TEST(HttpLimits, AHandlerMayLearnByAnErrorCodeWhatIsWrongWithABody) {
  std::vector<std::error_code> errors;
  Server server(ServerOptions{.max_body_bytes = 10, .body_timeout = 50ms});
  server.handle("POST /body", [&](Request& req, Response& res) {
    EXPECT_TRUE(req.body(errors.emplace_back()).empty());
    res.status(299).send("mine");
  });
  server.handle("POST /read", [&](Request& req, Response& res) {
    char some[100];
    EXPECT_EQ(req.read(std::span(some), errors.emplace_back()), 0u);
    res.status(299).send("mine");
  });
  server.handle("POST /good", [&](Request& req, Response& res) {
    std::error_code reading, sending;
    res.send(req.body(reading), sending);
    errors = {reading, sending};
  });
  const auto post = [](std::string_view path, std::string_view body) {
    return "POST " + std::string(path) +
           " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(body);
  };
  for (const char* path : {"/body", "/read"}) {
    for (auto [body, error] : {std::pair("z\r\n", std::errc::protocol_error),
                               std::pair("b\r\n12345678901\r\n", std::errc::message_size),
                               std::pair("5\r\n", std::errc::timed_out)}) {
      errors.clear();
      Talk talk(server);
      talk.say(post(path, body));
      const std::string answer = talk.hear_all();  // to its end: what follows is not understood
      EXPECT_EQ(errors, std::vector({std::make_error_code(error)})) << path;
      EXPECT_EQ(status_of(answer), 299) << "the handler answers";
    }
  }
  EXPECT_TRUE(answer_to(server, post("/good", "4\r\ngood\r\n0\r\n\r\n")).ends_with("good"));
  EXPECT_EQ(errors, std::vector<std::error_code>(2));
}

RT_TEST(HttpLimits, AHandlerMayLearnByAnErrorCodeThatTheClientHasGone) {
  Server server;
  Chan<void> gone;
  std::vector<std::error_code> errors(4);
  server.handle("GET /", [&](Request&, Response& res) {
    gone.recv();
    res.write("a", errors[0]);  // in the buffer
    res.flush(errors[1]);
    res.write(std::string(100'000, 'x'), errors[2]);
    res.flush(errors[3]);
    EXPECT_THROW(res.send("b", errors[0]), std::logic_error) << "a bug is no failure";
  });
  Talk talk(server);
  talk.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  talk.close();
  gone.close();
  talk.wait_for_server();
  EXPECT_FALSE(errors[0]);
  EXPECT_TRUE(errors[1]);
  EXPECT_TRUE(errors[2]);
  EXPECT_TRUE(errors[3]);
}

// A connection is reset when it is closed while bytes are unread, and what is still to be sent is
// lost.
RT_TEST(HttpLimits, BytesThatNobodyAskedForDoNotCutOffTheAnswer) {
  const std::string large(400'000, 'x');  // more than a client's system takes before it reads
  Server server;
  int socket = -1;
  auto unread = [&] {
    int bytes = 0;
    return ::ioctl(socket, FIONREAD, &bytes) == 0 ? bytes : -1;
  };
  Chan<void> body_is_read, more_is_here;
  server.handle("POST /", [&](Request& req, Response& res) {
    (void)req.body();
    body_is_read.close();
    EXPECT_TRUE(eventually([&] { return unread() == 2; }));
    more_is_here.close();
    res.header("Connection", "close").send(large);
  });
  auto listener = net::TcpListener::bind("127.0.0.1:0");
  auto client = net::TcpConn::connect(listener.local_address().to_string());
  client.set_deadline(50s);
  auto conn = std::make_unique<net::TcpConn>(listener.accept());
  socket = conn->native_handle();
  auto served = spawn([&] { server.serve_connection(std::move(conn)); });
  client.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody");
  body_is_read.recv();
  client.write("\r\n");  // some clients end a body with it
  more_is_here.recv();
  EXPECT_TRUE(eventually([&] { return unread() != 2; }));  // the server has read them, or closed it
  std::string heard;
  char some[5000];
  while (std::size_t n = client.read(std::as_writable_bytes(std::span(some))))
    heard.append(some, n);
  EXPECT_TRUE(heard.ends_with("\r\n\r\n" + large)) << heard.size();
  client.close();
  served.join();
}

}  // namespace
}  // namespace magpie::http
