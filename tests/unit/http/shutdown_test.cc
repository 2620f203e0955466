// shutdown_test.cc: what had come before a server was asked to end is served.

#include <magpie/http.h>
#include <magpie/magpie.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "support/http_talk.h"
#include "support/rt_test.h"

namespace magpie::http {
namespace {

using namespace std::chrono_literals;
using support::eventually;
using support::kGet;

// Blocks its thread, so that nobody else of this P runs before it is done.
class PlainClient {
 public:
  explicit PlainClient(std::uint16_t port)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    timeval limit{.tv_sec = 50, .tv_usec = 0};
    EXPECT_EQ(::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  }
  ~PlainClient() { ::close(socket_); }
  PlainClient(const PlainClient&) = delete;
  PlainClient& operator=(const PlainClient&) = delete;

  void ask() {
    EXPECT_EQ(::send(socket_, kGet.data(), kGet.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(kGet.size()));
  }
  std::string hear() {
    return blocking([this] {
      char bytes[4096];
      ssize_t n = ::recv(socket_, bytes, sizeof bytes, 0);
      if (n < 0) return std::string(std::strerror(errno));
      return n > 0 ? std::string(bytes, static_cast<std::size_t>(n)) : std::string("<end>");
    });
  }

 private:
  const int socket_;
};

struct GreetingServer {
  explicit GreetingServer(ServerOptions options = {}) : server(options) {
    server.handle("GET /", [this](Request&, Response& res) {
      ++handled;
      res.send("hello");
    });
    server.listen("127.0.0.1:0");
    port = server.local_address().port();
    served = spawn([this] { server.serve(); });
    PlainClient first(port);
    first.ask();
    EXPECT_NE(first.hear().find("hello"), std::string::npos);  // it serves
  }
  ~GreetingServer() { server.shutdown(0s); }
  std::atomic<int> handled{0};
  Server server;
  std::uint16_t port;
  JoinHandle<void> served;
};

using Clients = std::vector<std::unique_ptr<PlainClient>>;

constexpr int kClients = 50;

RT_TEST(HttpShutdown, RequestsThatHadComeOnKeptConnectionsAreAnswered) {
  GreetingServer serving(ServerOptions{.rest_after = 1ms});
  Clients clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<PlainClient>(serving.port));
    clients.back()->ask();
    EXPECT_NE(clients.back()->hear().find("hello"), std::string::npos);
  }
  sleep_for(20ms);  // some of them are dormant by now, likely; it must not matter
  for (auto& client : clients) client->ask();
  EXPECT_TRUE(serving.server.shutdown(50s));
  for (auto& client : clients) {
    const std::string answer = client->hear();
    EXPECT_NE(answer.find("hello"), std::string::npos) << answer;
    EXPECT_EQ(client->hear(), "<end>");
  }
}

RT_TEST(HttpShutdown, RequestsOfConnectionsThatWereNotAcceptedYetAreAnswered) {
  GreetingServer serving;
  Clients clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<PlainClient>(serving.port));
    clients.back()->ask();
  }
  EXPECT_TRUE(serving.server.shutdown(50s));
  EXPECT_EQ(serving.handled, 1 + kClients);  // by now, not later
  for (auto& client : clients) {
    const std::string answer = client->hear();
    EXPECT_NE(answer.find("hello"), std::string::npos) << answer;
  }
}

RT_TEST(HttpShutdown, AFullServerServesThoseInLineBeforeItEnds) {
  GreetingServer serving(ServerOptions{.max_connections = 2});
  Clients clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<PlainClient>(serving.port));
    clients.back()->ask();
  }
  EXPECT_TRUE(serving.server.shutdown(50s));
  EXPECT_EQ(serving.handled, 1 + kClients);  // by now, not later
  for (auto& client : clients) {
    const std::string answer = client->hear();
    EXPECT_NE(answer.find("hello"), std::string::npos) << answer;
  }
}

RT_TEST(HttpShutdown, WithoutGraceNobodyIsWaitedFor) {
  GreetingServer serving(ServerOptions{.max_connections = 1});
  Clients clients;
  for (int i = 0; i < kClients; ++i) clients.push_back(std::make_unique<PlainClient>(serving.port));
  EXPECT_TRUE(serving.server.shutdown(0s));
  EXPECT_EQ(serving.server.connections(), 0u);
}

}  // namespace
}  // namespace magpie::http
