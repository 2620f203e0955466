// allocation_test.cc: requests on a connection that has seen some like them allocate nothing, large
// ones leave nothing behind, and a server that has no memory for a connection goes on.

#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net/pipe.h>
#include <magpie/net/stream.h>
#include <magpie/net/tcp.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "support/http_talk.h"
#include "support/rt_test.h"

namespace {
std::atomic<long> allocations{0};
std::atomic<long> refused{0};
std::atomic<long> refuse_each{0};  // so many-th allocation fails; 0: none

// How much of memory is in use, by what malloc says of each piece.
std::atomic<long> bytes_in_use{0};
}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* operator new(std::size_t size) {
  const long number = allocations.fetch_add(1, std::memory_order_relaxed);
  const long each = refuse_each.load(std::memory_order_relaxed);
  if (each != 0 && number % each == 0) {
    refused.fetch_add(1, std::memory_order_relaxed);
    throw std::bad_alloc();
  }
  if (void* memory = std::malloc(size)) {
    bytes_in_use.fetch_add(static_cast<long>(malloc_usable_size(memory)),
                           std::memory_order_relaxed);
    return memory;
  }
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  if (memory != nullptr)
    bytes_in_use.fetch_sub(static_cast<long>(malloc_usable_size(memory)),
                           std::memory_order_relaxed);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
constexpr bool kCounts = true;
#else
constexpr bool kCounts = false;
#endif

namespace magpie::http {
namespace {

// Asks the same again and again; looks at the count of allocations after some requests and at the
// end.
class Asker final : public net::Stream {
 public:
  static constexpr int kWarm = 20, kAll = 1020;

  Asker(std::string request, long& counted) : request_(std::move(request)), counted_(counted) {}
  std::size_t read(std::span<std::byte> into) override {
    if (asked_ == kWarm) counted_ = -allocations.load();
    if (asked_ == kAll) counted_ += allocations.load();
    if (asked_++ == kAll) return 0;
    std::memcpy(into.data(), request_.data(), request_.size());
    return request_.size();
  }
  void write_parts(std::span<const std::span<const std::byte>> parts) override {
    for (auto part : parts) written += part.size();
  }
  void shutdown_write() override {}
  void close() noexcept override {}
  void do_set_read_deadline(TimePoint) noexcept override {}
  void do_set_write_deadline(TimePoint) noexcept override {}

  std::size_t written = 0;

 private:
  const std::string request_;
  long& counted_;
  int asked_ = 0;
};

RT_TEST(HttpAllocation, ASteadyConnectionAllocatesNothing) {
  Server server;
  server.handle("POST /users/{id}/posts/{post}", [](Request& req, Response& res) {
    res.status(201)
        .header("X-Agent", req.header("user-agent"))
        .header("X-Query", req.query("a-long-name-of-a-parameter"));
    EXPECT_EQ(req.param("post").size(), 40u);
    EXPECT_EQ(req.body().size(), 100u);
    res.write(req.path());
    res.write(req.body());
  });
  const std::string request =
      "POST /users/17/posts/" + std::string(40, 'p') +
      "?a-long-name-of-a-parameter=and-its-value-that-is-long HTTP/1.1\r\nHost: example.com\r\n" +
      "User-Agent: some agent that has a long name and a version\r\nContent-Length: 100\r\n\r\n" +
      std::string(100, 'b');
  long counted = -1;
  server.serve_connection(std::make_unique<Asker>(request, counted));
  // Others may allocate now and then: the goroutine of the timeouts, the test's own.
  EXPECT_LT(counted, 20);
}

// Asks one request after the other; notes how much memory is in use when the server wants the next.
class Script final : public net::Stream {
 public:
  Script(std::vector<std::string> requests, std::vector<long>& in_use)
      : requests_(std::move(requests)), in_use_(in_use) {
    in_use_.reserve(requests_.size() + 1);
  }
  std::size_t read(std::span<std::byte> into) override {
    if (said_ == 0) in_use_.push_back(bytes_in_use.load());
    if (next_ == requests_.size()) return 0;
    const std::string& request = requests_[next_];
    const std::size_t n = std::min(into.size(), request.size() - said_);
    std::memcpy(into.data(), request.data() + said_, n);
    said_ += n;
    if (said_ == request.size()) said_ = 0, ++next_;
    return n;
  }
  void write_parts(std::span<const std::span<const std::byte>>) override {}
  void shutdown_write() override {}
  void close() noexcept override {}
  void do_set_read_deadline(TimePoint) noexcept override {}
  void do_set_write_deadline(TimePoint) noexcept override {}

 private:
  const std::vector<std::string> requests_;
  std::vector<long>& in_use_;
  std::size_t next_ = 0, said_ = 0;
};

// What a connection holds after a small request that follows a large one.
long left_by(Server& server, const std::string& large) {
  const std::string small = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  std::vector<long> in_use;
  server.serve_connection(
      std::make_unique<Script>(std::vector{small, small, large, small, small}, in_use));
  EXPECT_EQ(in_use.size(), 6u);
  return in_use.back() - in_use[2];
}

RT_TEST(HttpAllocation, ALargeRequestLeavesNothingBehindInItsConnection) {
  if (!kCounts) GTEST_SKIP();
  Server server;
  server.handle("/{rest...}", [](Request& req, Response& res) {
    for (const char* name : {"a", "b", "none"}) (void)req.query(name);
    for (const auto& [name, value] : req.headers()) (void)req.header(name);
    (void)req.param("rest");
    (void)req.target();
    (void)req.body();
    res.send();
  });
  const std::string end = " HTTP/1.1\r\nHost: x\r\n\r\n";
  std::string names = "GET /?";
  for (int i = 0; i < 7900; ++i) names += "a&";
  std::string bad_values = "GET /?";
  for (int i = 0; i < 3000; ++i) bad_values += "a=%z&";
  std::string segments = "GET ";
  for (int i = 0; i < 250; ++i) segments += "/%41" + std::string(50, 'x');
  std::string fields = "GET / HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 90; ++i)
    fields += "F" + std::to_string(i) + ": " + std::string(150, 'x') + "\r\n";
  const std::string body =
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n" + std::string(60000, 'x');
  for (const std::string& large :
       {names + end, bad_values + end, segments + end, fields + "\r\n", body,
        "GET /" + std::string(15'000, 'x') + end, "GET /?b=" + std::string(15'000, 'x') + end}) {
    EXPECT_LT(left_by(server, large), 16 * 1024) << large.substr(0, 20);
  }
}

RT_TEST(HttpAllocation, AQueryCostsNoMoreMemoryThanItIsLong) {
  if (!kCounts) GTEST_SKIP();
  Server server;
  long cost = 0;
  server.handle("GET /", [&](Request& req, Response& res) {
    const long before = bytes_in_use.load();
    (void)req.query("b");
    (void)req.query("a");
    cost = bytes_in_use.load() - before;
    res.send();
  });
  std::string request = "GET /?";
  for (int i = 0; i < 7900; ++i) request += "a&";
  EXPECT_EQ(
      support::status_of(support::answer_to(server, request + " HTTP/1.1\r\nHost: x\r\n\r\n")),
      200);
  EXPECT_LT(cost, 16 * 1024);
}

// A stream that fails in its own way.
class Failing final : public net::Stream {
 public:
  explicit Failing(int how) : how_(how) {}
  std::size_t read(std::span<std::byte>) override {
    if (how_ == 0) throw std::bad_alloc();
    if (how_ == 1) throw std::logic_error("a fault of ours");
    throw how_;
  }
  void write_parts(std::span<const std::span<const std::byte>>) override {}
  void shutdown_write() override {}
  void close() noexcept override {}
  void do_set_read_deadline(TimePoint) noexcept override {}
  void do_set_write_deadline(TimePoint) noexcept override {}

 private:
  const int how_;
};

RT_TEST(HttpAllocation, WhateverAConnectionThrowsEndsOnlyThatConnection) {
  Server server;
  for (int how = 0; how < 3; ++how)
    EXPECT_NO_THROW(server.serve_connection(std::make_unique<Failing>(how)));
  EXPECT_EQ(server.connections(), 0u);
}

// A client that allocates nothing, and does not let others run.
class PlainClient {
 public:
  explicit PlainClient(std::uint16_t port)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
    connected_ =
        connected_ && ::send(socket_, support::kGet.data(), support::kGet.size(), MSG_NOSIGNAL) > 0;
  }
  ~PlainClient() { ::close(socket_); }
  // What has come; 0: the end, -1: nothing.
  ssize_t hear() const {
    char bytes[1000];
    const ssize_t count = ::recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
    return count < 0 && errno == ECONNRESET ? 0 : count;
  }
  PlainClient(const PlainClient&) = delete;
  PlainClient& operator=(const PlainClient&) = delete;

 private:
  const int socket_;
  bool connected_ = false;
};

RT_TEST(HttpAllocation, AServerWithoutMemoryForAConnectionGoesOn) {
  if (!kCounts) GTEST_SKIP();
  Server server;
  server.handle("GET /", [](Request&, Response& res) { res.send("hello"); });
  server.listen("127.0.0.1:0");
  const std::uint16_t port = server.local_address().port();
  auto served = spawn([&] { server.serve(); });
  // Wherever it is: as a connection is accepted, begins, reads or answers.
  for (long each : {1, 2, 3, 4, 5, 7, 11, 2, 3, 4, 5, 7, 11}) {
    const long before = refused.load();
    refuse_each.store(each, std::memory_order_relaxed);
    {
      PlainClient a(port), b(port), c(port), d(port);
      EXPECT_TRUE(support::eventually([&] { return refused.load() >= before + 2; }));
    }
    refuse_each.store(0, std::memory_order_relaxed);
    EXPECT_TRUE(support::eventually([&] { return server.connections() == 0; }));
  }
  auto conn = net::TcpConn::connect("127.0.0.1:" + std::to_string(port));
  conn.set_deadline(std::chrono::seconds(50));
  conn.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  char bytes[1000];
  EXPECT_GT(conn.read(std::as_writable_bytes(std::span(bytes))), 0u);
  server.shutdown(std::chrono::seconds(0));
}

RT_TEST(HttpAllocation, WithoutMemoryIdleConnectionsMakeRoom) {
  if (!kCounts) GTEST_SKIP();
  // It does not end by itself.
  Server server(ServerOptions{.idle_timeout = std::chrono::seconds(0),
                              .rest_after = std::chrono::seconds(0)});
  server.handle("GET /", [](Request&, Response& res) { res.send("hello"); });
  server.listen("127.0.0.1:0");
  const std::uint16_t port = server.local_address().port();
  auto served = spawn([&] { server.serve(); });
  PlainClient idle(port);
  EXPECT_TRUE(support::eventually([&] { return idle.hear() > 0; }));
  refuse_each.store(1, std::memory_order_relaxed);
  PlainClient another(port);
  const bool ended = support::eventually([&] { return idle.hear() == 0; });
  refuse_each.store(0, std::memory_order_relaxed);
  EXPECT_TRUE(ended);
  server.shutdown(std::chrono::seconds(0));
}

// The number that the next descriptor gets.
int lowest_free() {
  const int fd = ::dup(STDERR_FILENO);
  ::close(fd);
  return fd;
}

RT_TEST(HttpAllocation, ADescriptorThatThereIsNoMemoryForIsClosed) {
  if (!kCounts) GTEST_SKIP();
  net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
  PlainClient client(listener.local_address().port());
  const int free = lowest_free();
  int thrown = 0;
  auto without_memory = [&](auto f) {
    refuse_each.store(1, std::memory_order_relaxed);
    try {
      f();
    } catch (const std::bad_alloc&) {
      ++thrown;
    }
    refuse_each.store(0, std::memory_order_relaxed);
  };
  without_memory([&] { (void)listener.accept(); });
  EXPECT_EQ(lowest_free(), free);
  without_memory([] { (void)net::pipe(); });
  EXPECT_EQ(lowest_free(), free);
  EXPECT_EQ(thrown, 2);
  EXPECT_TRUE(support::eventually([&] { return client.hear() == 0; }));
}

}  // namespace
}  // namespace magpie::http
