// address_test.cc: what one remote address may do.

#include "http/address_table.h"

#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net.h>

#include <string>
#include <vector>

#include "support/http_talk.h"
#include "support/rt_test.h"

namespace magpie::http {
namespace {

using namespace std::chrono_literals;
using support::eventually;
using support::kGet;

constexpr std::int64_t kSecond = 1'000'000'000;

AddressTable::Key key(const char* address) {
  return AddressTable::key_of(net::Address::parse(address)).value();
}

TEST(HttpAddressTable, AnAddressIsOneOfIPv4OrANetOfIPv6) {
  EXPECT_EQ(key("1.2.3.4:1"), key("1.2.3.4:2"));
  EXPECT_NE(key("1.2.3.4:1"), key("1.2.3.5:1"));
  EXPECT_EQ(key("1.2.3.4:1"), key("[::ffff:1.2.3.4]:1"));
  EXPECT_EQ(key("[2001:db8:0:1::1]:1"), key("[2001:db8:0:1:ffff::2]:2"));
  EXPECT_NE(key("[2001:db8:0:1::1]:1"), key("[2001:db8:0:2::1]:1"));
  EXPECT_FALSE(AddressTable::key_of(net::Address::unix_path("/a")));
  EXPECT_FALSE(AddressTable::key_of(net::Address()));
}

TEST(HttpAddressTable, RequestsAreAllowedAtTheirRateAfterABurst) {
  AddressTable table(0, 10, 3);
  const AddressTable::Key a = key("1.2.3.4:1"), b = key("1.2.3.5:1");
  const std::int64_t start = 1000 * kSecond;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(table.add_request(a, start), 0);
  EXPECT_EQ(table.add_request(a, start), kSecond / 10);
  EXPECT_EQ(table.add_request(b, start), 0);  // another has its own
  EXPECT_EQ(table.add_request(a, start + kSecond / 10), 0);
  EXPECT_GT(table.add_request(a, start + kSecond / 10), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(table.add_request(a, start + kSecond), 0);
  EXPECT_GT(table.add_request(a, start + kSecond), 0);
}

TEST(HttpAddressTable, AddressesThatDoNothingAreForgotten) {
  AddressTable table(0, 1, 1);
  for (std::uint64_t i = 0; i < 100'000; ++i)
    EXPECT_EQ(table.add_request({.high = i, .low = 0}, static_cast<std::int64_t>(i) * kSecond), 0);
  EXPECT_LE(table.size(), 1024u);
}

TEST(HttpAddressTable, TheTableHasALimit) {
  AddressTable table(1, 0, 0);
  for (std::uint64_t i = 0; i < 70'000; ++i)
    EXPECT_TRUE(table.add_connection({.high = i, .low = 0}));
  EXPECT_LE(table.size(), 65'536u);
  EXPECT_FALSE(table.add_connection({.high = 1, .low = 0}));
  for (std::uint64_t i = 0; i < 70'000; ++i) table.remove_connection({.high = i, .low = 0});
  EXPECT_TRUE(table.add_connection({.high = 1, .low = 0}));
}

TEST(HttpAddressTable, ARateOfNearlyNothingAndABurstWithoutEndAreCounted) {
  AddressTable rare(0, 1e-300, 0);
  EXPECT_EQ(rare.add_request(key("1.2.3.4:1"), 1), 0);
  EXPECT_GT(rare.add_request(key("1.2.3.4:1"), 1), 0);
  AddressTable often(0, 1.0, SIZE_MAX);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(often.add_request(key("1.2.3.4:1"), 1), 0);
}

TEST(HttpAddressTable, ARateThatIsNoneIsRefused) {
  for (double rate : {-1.0, 1.0 / 0.0, 0.0 / 0.0})
    EXPECT_THROW(limit_per_address({.requests_per_second = rate}), std::invalid_argument) << rate;
}

std::string hear(net::TcpConn& conn, std::string_view end) {
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
struct LimitedServer {
  explicit LimitedServer(ServerOptions options, const AddressLimits& limits) : server(options) {
    server.use(limit_per_address(limits));
    server.handle("GET /", [](Request&, Response& res) { res.send("hello\n"); });
    server.listen("127.0.0.1:0");
    served = spawn([this] { server.serve(); });
  }
  ~LimitedServer() { server.shutdown(0s); }
  net::TcpConn connect() {
    auto conn = net::TcpConn::connect(server.local_address().to_string());
    conn.set_deadline(50s);
    return conn;
  }
  Server server;
  JoinHandle<void> served;
};

RT_TEST(HttpPerAddress, TooManyRequestsAreAnswered429) {
  LimitedServer serving({}, {.requests_per_second = 0.001, .burst = 3});
  auto conn = serving.connect();
  for (int i = 0; i < 3; ++i) {
    conn.write(kGet);
    EXPECT_TRUE(hear(conn, "hello\n").starts_with("HTTP/1.1 200"));
  }
  auto other = serving.connect();  // the address counts, not the connection
  for (auto* one : {&conn, &other, &other}) {
    one->write(kGet);
    std::string answer = hear(*one, "Requests\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 429")) << answer;
    EXPECT_NE(answer.find("Retry-After: 1000\r\n"), std::string::npos) << answer;
  }
}

RT_TEST(HttpPerAddress, AConnectionTooManyIsAnswered429AndClosed) {
  LimitedServer serving({}, {.connections = 2});
  auto a = serving.connect();
  auto b = std::make_unique<net::TcpConn>(serving.connect());
  for (int i = 0; i < 3; ++i) {
    for (auto* one : {&a, b.get()}) {
      one->write(kGet);
      EXPECT_TRUE(hear(*one, "hello\n").starts_with("HTTP/1.1 200"));
    }
  }
  auto c = serving.connect();
  c.write(kGet);
  std::string answer = hear(c, "more");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 429")) << answer;
  EXPECT_TRUE(answer.ends_with("<end>")) << answer;
  b.reset();
  EXPECT_TRUE(eventually([&] { return serving.server.connections() == 1; }));
  auto d = serving.connect();
  d.write(kGet);
  EXPECT_TRUE(hear(d, "hello\n").starts_with("HTTP/1.1 200"));
}

RT_TEST(HttpPerAddress, SilentConnectionsCountForTheLimitOfTheServer) {
  LimitedServer serving({.max_connections_per_address = 3}, {});
  std::vector<net::TcpConn> silent;
  for (int i = 0; i < 3; ++i) silent.push_back(serving.connect());
  EXPECT_TRUE(eventually([&] { return serving.server.connections() == 3; }));
  auto too_many = serving.connect();
  EXPECT_EQ(hear(too_many, "more"), "<end>");
  silent.pop_back();
  EXPECT_TRUE(eventually([&] {
    try {
      auto late = serving.connect();
      late.write(kGet);
      return hear(late, "hello\n").starts_with("HTTP/1.1 200");
    } catch (const std::system_error&) {  // reset: not noticed yet
      return false;
    }
  }));
}

}  // namespace
}  // namespace magpie::http
