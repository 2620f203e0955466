// resolver_test.cc: DnsResolver asks a name server, which is a goroutine here.

#include <gtest/gtest.h>
#include <magpie/net/dns.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/net_test.h"

namespace magpie::net {
namespace {

using namespace std::chrono_literals;
using support::error_of;

// Knows "here.test" (127.0.0.1), answers nothing for names that begin with "silent", and no to all
// others.
class NameServer {
 public:
  NameServer() : socket_(UdpSocket::bind("127.0.0.1:0")) {
    serving_.go([this] { serve(); });
  }
  ~NameServer() {
    socket_.close();
    serving_.wait();
  }
  std::string address() const { return socket_.local_address().to_string(); }
  int questions() const { return questions_; }

 private:
  void serve() {
    std::array<std::byte, 512> buffer;
    std::error_code error;
    for (;;) {
      UdpSocket::Received got = socket_.receive_from(buffer, error);
      if (error) return;
      ++questions_;
      std::string message(reinterpret_cast<const char*>(buffer.data()), got.bytes);
      std::string reply = answer(message);
      if (!reply.empty()) socket_.send_to(std::as_bytes(std::span(reply)), got.from);
    }
  }

  static std::string answer(const std::string& message) {
    constexpr std::size_t kHeader = 12;
    std::string name;
    std::size_t at = kHeader;
    while (message.at(at) != 0) {
      std::size_t length = static_cast<unsigned char>(message[at]);
      if (!name.empty()) name += '.';
      name += message.substr(at + 1, length);
      at += length + 1;
    }
    if (name.starts_with("silent")) return {};
    bool wants_v4 = message.at(at + 2) == 1;
    std::string question = message.substr(kHeader, at + 5 - kHeader);
    bool is_known = name == "here.test";
    bool answers = is_known && wants_v4;
    std::string reply = message.substr(0, 2);
    reply += std::string("\x81", 1) + (is_known ? '\x80' : '\x83');
    reply += std::string("\0\1\0", 3) + (answers ? '\1' : '\0') + std::string(4, '\0') + question;
    if (answers) {
      reply += std::string("\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4", 12);
      reply += std::string("\x7f\0\0\1", 4);
    }
    return reply;
  }

  UdpSocket socket_;
  std::atomic<int> questions_ = 0;
  WaitGroup serving_;
};

// The resolver of this program while it lives.
struct Installed {
  explicit Installed(const NameServer& server, std::chrono::milliseconds timeout = 60s) {
    DnsResolver::Options options;
    options.servers = server.address();
    options.timeout = timeout;
    set_resolver(std::make_shared<DnsResolver>(options));
  }
  ~Installed() { set_resolver(nullptr); }
};

RT_TEST(DnsResolver, FindsWhatTheServerKnows) {
  NameServer server;
  Installed installed(server);
  std::vector<Address> found = resolve("here.test");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().to_string(), "127.0.0.1:0");
  EXPECT_GE(server.questions(), 1);
}

RT_TEST(DnsResolver, SaysThatAServerKnowsNothing) {
  NameServer server;
  Installed installed(server);
  std::error_code error;
  EXPECT_TRUE(resolve("missing.test", error).empty());
  EXPECT_EQ(error.category(), dns_errors());
  EXPECT_NE(error.message(), "");
}

RT_TEST(DnsResolver, IsAskedByConnect) {
  NameServer server;
  Installed installed(server);
  TcpListener listener = TcpListener::bind("127.0.0.1:0");
  std::string port = std::to_string(listener.local_address().port());
  JoinHandle<TcpConn> client = spawn([&] { return TcpConn::connect("here.test:" + port, 1min); });
  TcpConn conn = listener.accept();
  client.join().write("found");
  EXPECT_EQ(support::read_text(conn, 5), "found");
}

RT_TEST(DnsResolver, EndsWhenItsTimeIsUpOrItsContextIsOver) {
  NameServer server;
  Installed installed(server);
  EXPECT_EQ(error_of([] { resolve("silent.test", 10ms); }), std::errc::timed_out);
  EXPECT_EQ(error_of([] { TcpConn::connect("silent.test:80", 10ms); }), std::errc::timed_out);
  Context context = Context::background().with_cancel();
  int before = server.questions();
  WaitGroup waiter;
  waiter.go([&] {
    EXPECT_EQ(error_of([&] { resolve("silent.test", context); }), std::errc::operation_canceled);
  });
  EXPECT_TRUE(support::eventually([&] { return server.questions() > before; }));
  context.cancel();
  waiter.wait();
}

RT_TEST(DnsResolver, AsksAgainWhenNobodyAnswers) {
  NameServer server;
  Installed installed(server, 5ms);
  std::error_code error;
  EXPECT_TRUE(resolve("silent.test", error).empty());
  EXPECT_EQ(error.category(), dns_errors());
  EXPECT_EQ(error, std::errc::timed_out);
  EXPECT_TRUE(support::eventually([&] { return server.questions() >= 3; }));
}

RT_TEST(DnsResolver, NeedsNoThreadsForManyNames) {
  NameServer server;
  Installed installed(server);
  constexpr int kNames = 200;
  WaitGroup all;
  std::atomic<int> ended = 0;
  Context context = Context::background().with_cancel();
  for (int i = 0; i < kNames; ++i) {
    all.go([&, i] {
      std::error_code error;
      resolve("silent" + std::to_string(i) + ".test", context, error);
      if (error == std::errc::operation_canceled) ++ended;
    });
  }
  EXPECT_TRUE(support::eventually([&] { return server.questions() >= kNames; }));
  auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  EXPECT_LT(std::distance(begin(tasks), end(tasks)), kNames / 2);  // on a busy machine some
  context.cancel();
  all.wait();
  EXPECT_EQ(ended, kNames);
}

TEST(DnsResolver, WorksOnPlainThreadsWithoutARuntime) {
  set_resolver(std::make_shared<DnsResolver>());
  EXPECT_FALSE(resolve("localhost", 1min).empty());
  set_resolver(nullptr);
}

}  // namespace
}  // namespace magpie::net
