// listen_test.cc: servers on real sockets: accepting, shutting down, running out of things.

#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fcntl.h>

#include <string>
#include <vector>

#include "support/http_talk.h"
#include "support/rt_test.h"

namespace magpie::http {
namespace {

using namespace std::chrono_literals;
using support::eventually;
using support::kGet;

std::string hear_until(net::TcpConn& conn, std::string_view end) {
  std::string heard;
  char bytes[4096];
  while (heard.find(end) == std::string::npos) {
    std::size_t n = conn.read(std::as_writable_bytes(std::span(bytes)));
    if (n == 0) return heard + "<end>";
    heard.append(bytes, n);
  }
  return heard;
}

// Serves until the test's end.
struct Listening {
  explicit Listening(Server& its) : server(its) {
    server.listen("127.0.0.1:0");
    address = server.local_address().to_string();
    served = spawn([this] { server.serve(); });
  }
  ~Listening() { server.shutdown(0s); }
  net::TcpConn connect() {
    auto conn = net::TcpConn::connect(address);
    conn.set_deadline(50s);
    return conn;
  }
  Server& server;
  std::string address;
  JoinHandle<void> served;
};

RT_TEST(HttpListen, RequestsAreServedOverTcpUntilShutdown) {
  Server server;
  server.handle("GET /",
                [](Request& req, Response& res) { res.send("hello " + req.remote_address()); });
  server.listen("127.0.0.1:0");
  server.listen("127.0.0.1:0");
  const std::string address = server.local_address().to_string();
  EXPECT_NE(server.local_address().port(), 0);
  auto served = spawn([&] { server.serve(); });
  WaitGroup clients;
  for (int i = 0; i < 20; ++i) {
    clients.go([&] {
      auto conn = net::TcpConn::connect(address);
      conn.set_deadline(50s);
      for (int n = 0; n < 10; ++n) {
        conn.write(kGet);
        EXPECT_TRUE(hear_until(conn, "hello 127.0.0.1:").starts_with("HTTP/1.1 200 OK"));
      }
    });
  }
  clients.wait();
  EXPECT_TRUE(server.shutdown(10s));
  served.join();
  EXPECT_THROW(net::TcpConn::connect(address), std::system_error);
  EXPECT_TRUE(server.shutdown(0s));  // again: nothing
}

RT_TEST(HttpListen, ShutdownLetsRequestsFinishAndEndsIdleConnections) {
  Server server;
  Chan<void> inside, leave;
  server.handle("GET /", [&](Request&, Response& res) {
    inside.send();
    leave.recv();
    res.send("finished");
  });
  server.handle("GET /quick", [&](Request&, Response& res) { res.send("quick"); });
  Listening serving(server);
  auto idle = serving.connect(), busy = serving.connect();
  idle.write("GET /quick HTTP/1.1\r\nHost: x\r\n\r\n");
  hear_until(idle, "quick");
  busy.write(kGet);
  inside.recv();
  auto shut = spawn([&] { return server.shutdown(50s); });
  EXPECT_EQ(hear_until(idle, "more"), "<end>");
  leave.send();
  std::string answer = hear_until(busy, "more");
  EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("finished<end>")) << answer;
  EXPECT_TRUE(shut.join());
  EXPECT_EQ(server.connections(), 0u);
}

RT_TEST(HttpListen, ShutdownDoesNotWaitForConnectionsThatHaveSaidNothing) {
  Server server;
  Listening serving(server);
  auto silent = serving.connect();
  EXPECT_TRUE(eventually([&] { return server.connections() == 1; }));
  EXPECT_TRUE(server.shutdown(1h));  // or the test takes too long
  EXPECT_EQ(hear_until(silent, "more"), "<end>");
}

RT_TEST(HttpListen, WhatIsLeftAfterTheGraceIsCutOff) {
  Server server;
  Chan<void> inside;
  std::atomic<bool> cancelled{false};
  server.handle("GET /", [&](Request& req, Response& res) {
    Context context = req.context();
    inside.send();
    context.done().recv();
    cancelled = true;
    for (;;) {  // until a write fails
      res.write("somebody may hear");
      res.flush();
    }
  });
  Listening serving(server);
  auto conn = serving.connect();
  conn.write(kGet);
  inside.recv();
  EXPECT_TRUE(server.shutdown(10ms));
  EXPECT_TRUE(cancelled);
  try {
    EXPECT_TRUE(hear_until(conn, "more").ends_with("<end>"));
  } catch (const std::system_error&) {  // reset
  }
}

// A server whose handler works until its context is cancelled.
struct LongWork {
  LongWork() {
    server.handle("GET /", [this](Request& req, Response& res) {
      Context context = req.context();
      inside.send();
      context.done().recv();
      ended.send();
      res.send("nobody hears");
    });
  }
  Server server{ServerOptions{.header_timeout = 20ms}};  // so the timeouts are checked every 5 ms
  Chan<void> inside, ended{10};
};

RT_TEST(HttpListen, TheContextOfARequestIsCancelledWhenTheClientLeaves) {
  LongWork work;
  Listening serving(work.server);
  {
    auto conn = serving.connect();
    conn.write(kGet);
    work.inside.recv();
  }
  work.ended.recv();
  // With part of a next request unread, which hides the end from whoever reads.
  {
    auto conn = serving.connect();
    conn.write(kGet);
    conn.write("GET ");
    work.inside.recv();
    conn.shutdown_write();
    work.ended.recv();
  }
  EXPECT_TRUE(eventually([&] { return work.server.connections() == 0; }));
}

RT_TEST(HttpListen, TheContextOfARequestLivesAsLongAsItsHandler) {
  Server server(
      ServerOptions{.header_timeout = 4ms});  // so the timeouts are checked every millisecond
  Chan<Context> kept(1);
  std::atomic<int> cancelled_early{0};
  server.handle("GET /", [&](Request& req, Response& res) {
    Context context = req.context();
    sleep_for(20ms);
    if (context.cancelled()) ++cancelled_early;
    kept.send(context);
    res.send("hello");
  });
  Listening serving(server);
  auto conn = serving.connect();
  for (int i = 0; i < 3; ++i) {
    conn.write(kGet);
    EXPECT_NE(hear_until(conn, "hello").find("200 OK"), std::string::npos);
    kept.recv()->done().recv();
  }
  EXPECT_EQ(cancelled_early, 0);
}

RT_TEST(HttpListen, AtTheLimitOfConnectionsIdleOnesMakeRoom) {
  Server server(ServerOptions{.max_connections = 2});
  server.handle("GET /", [](Request&, Response& res) { res.send("hello"); });
  Listening serving(server);
  for (int i = 0; i < 10; ++i) {
    auto a = serving.connect(), b = serving.connect(), c = serving.connect();
    for (auto* conn : {&a, &b, &c}) {
      conn->write(kGet);
      EXPECT_TRUE(hear_until(*conn, "hello").starts_with("HTTP/1.1 200"));
      EXPECT_LE(server.connections(), 2u);
    }
  }
}

RT_TEST(HttpListen, OutOfDescriptorsItServesOnAndRecovers) {
  Server server;
  server.handle("GET /", [](Request&, Response& res) { res.send("hello"); });
  Listening serving(server);
  auto before = serving.connect();
  before.write(kGet);
  hear_until(before, "hello");

  // A connection can be made, but not accepted: the last number is the client's.
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  std::vector<int> all;
  rlimit tight = old;
  tight.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  for (int fd; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) all.push_back(fd);
  ASSERT_FALSE(all.empty());
  ::close(all.back());
  all.pop_back();
  auto late = serving.connect();
  late.write(kGet);
  // Idle connections may have to go to make room.
  try {
    before.write(kGet);
    std::string heard = hear_until(before, "hello");
    EXPECT_TRUE(heard.starts_with("HTTP/1.1 200") || heard == "<end>") << heard;
  } catch (const std::system_error& error) {
    EXPECT_TRUE(error.code() == std::errc::connection_reset ||
                error.code() == std::errc::broken_pipe);
  }
  for (int fd : all) ::close(fd);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_TRUE(hear_until(late, "hello").starts_with("HTTP/1.1 200"));
}

RT_TEST(HttpListen, ConnectionsThatAreResetLeaveNothingBehind) {
  Server server(
      ServerOptions{.on_error = [](const Request&, std::exception_ptr) { ADD_FAILURE(); }});
  server.handle("GET /", [](Request&, Response& res) {
    for (int i = 0; i < 100; ++i) {
      res.write(std::string(10'000, 'x'));
      res.flush();
    }
  });
  Listening serving(server);
  for (int i = 0; i < 20; ++i) {
    auto conn = serving.connect();
    conn.write(kGet);
    hear_until(conn, "xxx");
    linger reset{.l_onoff = 1, .l_linger = 0};
    ASSERT_EQ(::setsockopt(conn.native_handle(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
  }
  EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
}

RT_TEST(HttpListen, TheLastAnswerArrivesAlthoughTheClientWasStillSending) {
  Server server(ServerOptions{.max_body_bytes = 1000});
  server.handle("POST /", [](Request& req, Response& res) { res.send(req.body()); });
  Listening serving(server);
  for (int i = 0; i < 10; ++i) {
    auto conn = serving.connect();
    std::string body(100'000, 'x');
    conn.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + body);
    EXPECT_TRUE(hear_until(conn, "Content Too Large\n").starts_with("HTTP/1.1 413"));
  }
}

RT_TEST(HttpListen, ServeCanBeEndedBeforeItBegan) {
  Server server;
  EXPECT_THROW(server.serve(), std::logic_error);
  EXPECT_THROW((void)server.local_address(), std::logic_error);
  server.listen("127.0.0.1:0");
  EXPECT_TRUE(server.shutdown(0s));
  server.serve();
  EXPECT_THROW(server.serve(), std::logic_error);
  EXPECT_THROW(server.handle("GET /", [](Request&, Response&) {}), std::logic_error);
}

RT_TEST(HttpListen, AServerThatIsDestroyedEndsByItself) {
  Server server;
  server.handle("GET /", [](Request&, Response& res) { res.send("hello"); });
  server.listen("127.0.0.1:0");
  go([&server] { server.serve(); });
  auto conn = net::TcpConn::connect(server.local_address().to_string());
  conn.set_deadline(50s);
  conn.write(kGet);
  hear_until(conn, "hello");
}

// The server's end of a connection: it is a descriptor of this program too.
int other_end_of(const net::TcpConn& conn) {
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
        peer.ss_family == AF_INET &&
        net::Address::from(reinterpret_cast<sockaddr*>(&peer), size) == conn.local_address())
      return fd;
  }
  return -1;
}

RT_TEST(HttpListen, APeerThatVanishesWithoutAWordIsFoundOut) {
  Server server;
  server.handle("GET /", [](Request&, Response& res) { res.send("hello"); });
  Listening serving(server);
  auto conn = serving.connect();
  conn.write(kGet);
  hear_until(conn, "hello");
  const int fd = other_end_of(conn);
  int on = 0, idle = 0;
  socklen_t size = sizeof on;
  ASSERT_EQ(::getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &size), 0);
  ASSERT_EQ(::getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, &size), 0);
  EXPECT_EQ(on, 1);
  EXPECT_EQ(idle, 15);
}

std::string ask_unix(const std::string& path) {
  auto conn = net::UnixConn::connect(path);
  conn.set_deadline(50s);
  conn.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  std::string heard;
  char bytes[4096];
  while (std::size_t n = conn.read(std::as_writable_bytes(std::span(bytes))))
    heard.append(bytes, n);
  return heard;
}

RT_TEST(HttpListen, AServerMayListenOnAUnixSocket) {
  const std::string path = "/tmp/magpie-listen-test-" + std::to_string(::getpid());
  for (int round = 0; round < 2; ++round) {
    Server server;
    server.handle("GET /",
                  [](Request& req, Response& res) { res.send("[" + req.remote_address() + "]"); });
    server.use(access_log([](std::string_view line) { EXPECT_TRUE(line.starts_with("- - - ")); }));
    server.listen("unix:" + path);
    EXPECT_THROW(server.listen("unix:" + path), std::system_error);  // somebody listens
    auto served = spawn([&] { server.serve(); });
    EXPECT_TRUE(ask_unix(path).ends_with("[]"));
    server.shutdown(0s);
    served.join();
    EXPECT_NE(::access(path.c_str(), F_OK), 0);
    // What a program that was killed leaves behind is no obstacle.
    const int left = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const net::Address address = net::Address::unix_path(path);
    ASSERT_EQ(::bind(left, address.data(), address.size()), 0);
    ::close(left);
  }
  ::unlink(path.c_str());
}

RT_TEST(HttpListen, WhereItCannotListenIsToldByAnErrorCode) {
  Server server;
  std::error_code error;
  server.listen("nonsense", error);
  EXPECT_EQ(error, std::errc::invalid_argument);
  server.listen("unix:/no/such/folder/x", error);
  EXPECT_EQ(error, std::errc::no_such_file_or_directory);
  server.listen_fd(-1, error);
  EXPECT_EQ(error, std::errc::bad_file_descriptor);
  EXPECT_THROW((void)server.local_address(), std::logic_error) << "nothing was added";
  server.listen("127.0.0.1:0", error);
  EXPECT_FALSE(error) << error.message();
  const std::string taken = server.local_address().to_string();
  server.listen(taken, error);
  EXPECT_EQ(error, std::errc::address_in_use);
}

RT_TEST(HttpListen, AServerMayListenOnASocketThatSomebodyElseHasBound) {
  Server server;
  server.handle("GET /", [](Request&, Response& res) { res.send("hello"); });
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  const net::Address any = net::Address::parse("127.0.0.1:0");
  ASSERT_EQ(::bind(fd, any.data(), any.size()), 0);
  server.listen_fd(fd);
  EXPECT_NE(server.local_address().port(), 0);
  auto served = spawn([&] { server.serve(); });
  auto conn = net::TcpConn::connect(server.local_address().to_string());
  conn.set_deadline(50s);
  conn.write(kGet);
  EXPECT_TRUE(hear_until(conn, "hello").starts_with("HTTP/1.1 200"));
  const int datagrams = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  EXPECT_THROW(server.listen_fd(datagrams), std::invalid_argument);
  EXPECT_THROW(server.listen_fd(-1), std::system_error);
  EXPECT_EQ(::close(datagrams), 0);  // still ours
  server.shutdown(0s);
}

RT_TEST(HttpListen, AServerThatShutsDownLeavesTheLineOfASharedSocketToTheNext) {
  Server first(ServerOptions{.max_connections = 1});
  Chan<void> inside, leave;
  first.handle("GET /", [&](Request&, Response& res) {
    inside.send();
    leave.recv();
    res.send("of the first");
  });
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const net::Address any = net::Address::parse("127.0.0.1:0");
  ASSERT_EQ(::bind(fd, any.data(), any.size()), 0);
  const int shared = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  first.listen_fd(fd);
  const std::string address = first.local_address().to_string();
  auto first_served = spawn([&] { first.serve(); });
  auto busy = net::TcpConn::connect(address, 50s);
  busy.set_deadline(50s);
  busy.write(kGet);
  inside.recv();
  // These are in line, but for one that may wait for a place. Either server may answer them.
  std::vector<net::TcpConn> waiting;
  auto wait_in_line = [&] {
    waiting.push_back(net::TcpConn::connect(address, 10s));
    waiting.back().set_deadline(50s);
    waiting.back().write(kGet);
  };
  for (int i = 0; i < 3; ++i) wait_in_line();
  auto shut = spawn([&] { return first.shutdown(50s); });
  leave.close();
  auto go_on = spawn([&] {
    while (inside.recv()) {
    }
  });
  hear_until(busy, "of the first");
  shut.join();
  first_served.join();
  inside.close();
  go_on.join();
  for (int i = 0; i < 3; ++i) wait_in_line();

  Server next;
  next.handle("GET /", [](Request&, Response& res) { res.send("of the next"); });
  next.listen(net::TcpListener::adopt(shared));
  auto next_served = spawn([&] { next.serve(); });
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    std::string answer = hear_until(waiting[i], i < 3 ? "of the " : "of the next");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK")) << i << answer;
    EXPECT_FALSE(answer.ends_with("<end>")) << i << answer;
  }
  next.shutdown(0s);
}

RT_TEST(HttpListen, AnAdoptedSocketGetsALineAgain) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const net::Address any = net::Address::parse("127.0.0.1:0");
  ASSERT_EQ(::bind(fd, any.data(), any.size()), 0);
  ASSERT_EQ(::listen(fd, 0), 0);
  Server server;
  server.listen(net::TcpListener::adopt(fd));
  std::vector<net::TcpConn> waiting;
  for (int i = 0; i < 5; ++i)
    EXPECT_NO_THROW(
        waiting.push_back(net::TcpConn::connect(server.local_address().to_string(), 10s)));
}

}  // namespace
}  // namespace magpie::http
