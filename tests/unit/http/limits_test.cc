// limits_test.cc: heads and clients that are too large or too slow are refused, and no other client
// waits for them. Bodies: body_limits_test.cc.

#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "support/http_echo.h"
#include "support/http_talk.h"
#include "support/rt_test.h"

namespace magpie::http {
namespace {

using namespace std::chrono_literals;
using support::add_echo;
using support::answer_to;
using support::eventually;
using support::status_of;
using support::Talk;

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

// The server has not come to read the first bytes before their time was up.
class ReadLate final : public net::UnixConn {
 public:
  explicit ReadLate(net::UnixConn conn) : net::UnixConn(std::move(conn)) {}
  using net::UnixConn::read;
  std::size_t read(std::span<std::byte> into) override {
    if (reads_++ > 0) return net::UnixConn::read(into);
    throw std::system_error(std::make_error_code(std::errc::timed_out));
  }

 private:
  int reads_ = 0;
};

RT_TEST(HttpLimits, AFirstRequestThatHasComeIsServedThoughItsTimeIsUp) {
  Server server;
  add_echo(server);
  for (const bool asks : {true, false}) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    net::UnixConn client = net::UnixConn::adopt(ends[0]);
    client.set_deadline(50s);
    if (asks) client.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    server.serve_connection(std::make_unique<ReadLate>(net::UnixConn::adopt(ends[1])));
    std::string answer(1000, '\0');
    answer.resize(client.read(std::as_writable_bytes(std::span(answer))));
    EXPECT_EQ(status_of(answer), asks ? 200 : 0);
  }
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

// Not the hour that others have to take an answer.
TEST(HttpLimits, ARefusedPeerHasTwoSecondsToTakeTheAnswer) {
  run(Options{.procs = 2}, [] {
    Server server(ServerOptions{.write_timeout = 1h});
    server.use([](const Handler&) {
      return [](Request&, Response& res) { res.send(std::string(32 << 20, 'x')); };
    });
    server.listen("127.0.0.1:0");
    WaitGroup serving;
    serving.go([&] { server.serve(); });
    net::TcpConn client = net::TcpConn::connect(server.local_address().to_string());
    client.write("what?\r\n\r\n");
    EXPECT_TRUE(eventually([&] { return server.connections() == 1; }));
    EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
    server.shutdown(1s);
    serving.wait();
  });
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

// The client reads again after its time was up: what the handler has written meanwhile would stand
// where the missing part of the answer belongs.
RT_TEST(HttpLimits, NothingFollowsAnAnswerWhoseWriteHasFailed) {
  Server server(ServerOptions{.write_timeout = 20ms});
  Chan<void> failed, reads_again;
  server.handle("GET /", [&](Request&, Response& res) {
    std::error_code first, error;
    while (!first) res.write(std::string(10'000, 'x'), first);
    EXPECT_EQ(first, std::errc::timed_out);
    failed.close();
    reads_again.recv();
    for (std::size_t size : {std::size_t{1}, std::size_t{10'000}}) {
      res.write(std::string(size, 'y'), error);
      EXPECT_EQ(error, first);
      res.flush(error);
      EXPECT_EQ(error, first);
    }
  });
  Talk talk(server, support::MemoryStream::kNoLimit, 15'000);
  talk.say(support::kGet);
  failed.recv();
  JoinHandle<std::string> reading = spawn([&] { return talk.hear_all(); });
  EXPECT_TRUE(eventually([&] { return talk.stream().unread() == 0; }));
  reads_again.close();
  EXPECT_EQ(reading.join().find('y'), std::string::npos);
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
