// client_request_test.cc: requests with a context, a time-out of their own, and errors that say
// what they are about.
#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "support/net_test.h"
#include "support/rt_test.h"

namespace magpie::http {
namespace {

using namespace std::chrono_literals;
using support::error_of;
using support::eventually;

// Hears requests and says nothing, or some bytes and then nothing more.
class Silence {
 public:
  explicit Silence(std::string first = {}) : first_(std::move(first)) {
    served_ = spawn([this] {
      (void)error_of([this] {
        for (;;) talking_.go([this, conn = listener_.accept()]() mutable { talk(conn); });
      });
    });
  }
  ~Silence() {
    listener_.close();
    served_.join();
    talking_.wait();
  }
  std::string url() const { return "http://" + listener_.local_address().to_string() + "/"; }
  std::atomic<int> heard{0};  // requests
  std::atomic<int> left{0};   // connections that the client has ended

 private:
  void talk(net::TcpConn& conn) {
    (void)error_of([&] {
      std::string head;
      char some[1000];
      while (head.find("\r\n\r\n") == std::string::npos) {
        std::size_t n = conn.read(std::as_writable_bytes(std::span(some)));
        if (n == 0) return;
        head.append(some, n);
      }
      conn.write(first_);
      ++heard;
      while (conn.read(std::as_writable_bytes(std::span(some))) > 0) {
      }
    });
    ++left;
  }

  const std::string first_;
  net::TcpListener listener_ = net::TcpListener::bind("127.0.0.1:0");
  WaitGroup talking_;
  JoinHandle<void> served_;
};

RT_TEST(ClientRequest, HasAllPartsOfARequest) {
  Server server;
  server.handle("/echo", [](Request& req, Response& res) {
    res.header("X-Method", req.method()).send(req.header("x-mine") + ":" + req.body());
  });
  server.listen("127.0.0.1:0");
  JoinHandle<void> served = spawn([&] { server.serve(); });
  const std::string url = "http://" + server.local_address().to_string() + "/echo";
  Client client;
  EXPECT_EQ(client.request({.url = url}).header("X-Method"), "GET");
  Reply reply = client.request({.method = "PUT",
                                .url = url,
                                .headers = {{"X-Mine", "yes"}},
                                .body = "text",
                                .timeout = 20s,
                                .context = Context::background().with_cancel()});
  EXPECT_EQ(reply.header("X-Method"), "PUT");
  EXPECT_EQ(reply.body, "yes:text");
  EXPECT_EQ(client.idle_connections(), 1u);  // a context that did not end changes nothing
  ReplyStream stream = client.open({.method = "POST", .url = url, .body = "more"});
  EXPECT_EQ(stream.read_all(100), ":more");
  server.shutdown(0s);
}

RT_TEST(ClientRequest, ACancelledContextEndsItAtOnce) {
  Silence silence;
  Client client;
  Context context = Context::background().with_cancel();
  WaitGroup canceller;
  canceller.go([&] {
    EXPECT_TRUE(eventually([&] { return silence.heard == 1; }));
    context.cancel();
  });
  EXPECT_EQ(error_of([&] { client.request({.url = silence.url(), .context = context}); }),
            std::errc::operation_canceled);
  canceller.wait();
  EXPECT_TRUE(eventually([&] { return silence.left == 1; }));  // the connection is closed
  EXPECT_EQ(client.idle_connections(), 0u);
  // One that has ended before does not even begin.
  EXPECT_EQ(error_of([&] { client.request({.url = silence.url(), .context = context}); }),
            std::errc::operation_canceled);
  EXPECT_EQ(silence.heard, 1);
}

RT_TEST(ClientRequest, ACancelledContextEndsTheReadOfABody) {
  Silence silence("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegin");
  Client client;
  Context context = Context::background().with_cancel();
  ReplyStream stream = client.open({.url = silence.url(), .context = context});
  char some[100];
  EXPECT_EQ(stream.read(std::span<char>(some)), 5u);
  WaitGroup canceller;
  std::size_t waiting_before = stats().waiting;
  canceller.go([&] {
    EXPECT_TRUE(support::waiting(waiting_before + 1));
    context.cancel();
  });
  EXPECT_EQ(error_of([&] { (void)stream.read(std::span<char>(some)); }),
            std::errc::operation_canceled);
  canceller.wait();
  EXPECT_TRUE(eventually([&] { return silence.left == 1; }));
}

RT_TEST(ClientRequest, ContextsMayEndAtAnyTime) {
  Server server;
  server.handle("GET /", [](Request&, Response& res) { res.send("hello"); });
  server.listen("127.0.0.1:0");
  JoinHandle<void> served = spawn([&] { server.serve(); });
  const std::string url = "http://" + server.local_address().to_string() + "/";
  Client client;
  WaitGroup all;
  for (int i = 0; i < 20; ++i) {
    all.go([&] {
      for (int round = 0; round < 10; ++round) {
        Context context = Context::background().with_cancel();
        WaitGroup canceller;
        canceller.go([&] { context.cancel(); });
        std::optional<std::error_code> error = error_of(
            [&] { EXPECT_EQ(client.request({.url = url, .context = context}).body, "hello"); });
        EXPECT_TRUE(!error || *error == std::errc::operation_canceled) << error->message();
        canceller.wait();
      }
    });
  }
  all.wait();
  EXPECT_EQ(client.get(url).body, "hello");
  server.shutdown(0s);
}

RT_TEST(ClientRequest, ItsTimeIsItsOwn) {
  Silence silence;
  Client client(ClientOptions{.timeout = 1h});
  EXPECT_EQ(error_of([&] { client.request({.url = silence.url(), .timeout = 20ms}); }),
            std::errc::timed_out);
  EXPECT_EQ(
      error_of([&] {
        client.request({.url = silence.url(), .context = Context::background().with_timeout(20ms)});
      }),
      std::errc::timed_out);
  EXPECT_TRUE(eventually([&] { return silence.left == silence.heard; }));
  EXPECT_EQ(client.idle_connections(), 0u);
}

// The listener's queue is full, so connecting takes as long as the system tries.
RT_TEST(ClientRequest, AContextEndsTheAttemptToConnect) {
  int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  net::Address any = net::Address::parse("127.0.0.1:0");
  ASSERT_EQ(::bind(listener, any.data(), any.size()), 0);
  ASSERT_EQ(::listen(listener, 0), 0);
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &size), 0);
  const std::string address = "127.0.0.1:" + std::to_string(ntohs(bound.sin_port));
  std::vector<net::TcpConn> queued;
  while (!error_of([&] { queued.push_back(net::TcpConn::connect(address, 50ms)); }))
    ASSERT_LT(queued.size(), 100u);
  Client client(ClientOptions{.connect_timeout = 300ms});
  Context context = Context::background().with_cancel();
  std::size_t waiting_before = stats().waiting;
  WaitGroup canceller;
  canceller.go([&] {
    EXPECT_TRUE(support::waiting(waiting_before + 2));
    context.cancel();
  });
  EXPECT_EQ(
      error_of([&] { client.request({.url = "http://" + address + "/", .context = context}); }),
      std::errc::operation_canceled);
  canceller.wait();
  ::close(listener);
}

template <class Error>
std::string text_of(auto f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

RT_TEST(ClientErrors, NameTheRequest) {
  Client client;
  std::string text =
      text_of<std::system_error>([&] { client.get("http://127.0.0.1:1/some/where?a=b"); });
  EXPECT_TRUE(text.starts_with("magpie: GET http://127.0.0.1:1/some/where?a=b: connect")) << text;
  EXPECT_TRUE(text.ends_with(": Connection refused")) << text;
  EXPECT_EQ(text.find("Connection refused"), text.rfind("Connection refused")) << text;
  EXPECT_EQ(text.rfind("magpie: "), 0u) << text;
  Silence silence("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n");
  text = text_of<ProtocolError>([&] { client.post(silence.url(), "x"); });
  EXPECT_TRUE(text.starts_with("magpie: POST " + silence.url() + ": ")) << text;
  text = text_of<std::system_error>([&] {
    client.request({.url = silence.url(), .context = Context::background().with_timeout(0s)});
  });
  EXPECT_TRUE(text.starts_with("magpie: GET " + silence.url() + ": ")) << text;
}

RT_TEST(ClientErrors, AreToldWithoutThrowing) {
  Client client;
  std::error_code error;
  EXPECT_EQ(client.get("http://127.0.0.1:1/", error).status, 0);
  EXPECT_EQ(error, std::errc::connection_refused);
  client.post("http://127.0.0.1:1/", "x", error);
  EXPECT_EQ(error, std::errc::connection_refused);
  client.get("file:///etc/passwd", error);
  EXPECT_EQ(error, std::errc::invalid_argument);
  client.get("http://127.0.0.1:1/", {{"a b", "c"}}, error);
  EXPECT_EQ(error, std::errc::invalid_argument);
  Silence nonsense("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n");
  client.post(nonsense.url(), "x", {{"A", "b"}}, error);
  EXPECT_EQ(error, std::errc::protocol_error);
  Silence silence;
  client.request({.url = silence.url(), .timeout = 1ms}, error);
  EXPECT_EQ(error, std::errc::timed_out);
  const Context over = Context::background().with_cancel();
  over.cancel();
  client.request({.url = silence.url(), .context = over}, error);
  EXPECT_EQ(error, std::errc::operation_canceled);
  client.request("PUT", "http://127.0.0.1:1/", error);
  EXPECT_EQ(error, std::errc::connection_refused);
  client.request("PUT", "http://127.0.0.1:1/", {{"a b", "c"}}, error);
  EXPECT_EQ(error, std::errc::invalid_argument);
  client.request("PUT", nonsense.url(), {}, "x", error);
  EXPECT_EQ(error, std::errc::protocol_error);
  Silence good("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood");
  EXPECT_EQ(client.get(good.url(), error).body, "good");
  EXPECT_FALSE(error) << error.message();
  client.close_idle_connections();
  EXPECT_EQ(client.request("PUT", good.url(), {{"A", "b"}}, "x", error).body, "good");
  EXPECT_FALSE(error) << error.message();
  client.close_idle_connections();  // which `good` waits for
}

RT_TEST(ClientErrors, OfAStreamAreToldWithoutThrowing) {
  Client client;
  std::error_code error;
  ReplyStream none = client.open({.url = "http://127.0.0.1:1/"}, error);
  EXPECT_EQ(error, std::errc::connection_refused);
  EXPECT_FALSE(none.is_open());
  EXPECT_EQ(none.status(), 0);
  EXPECT_TRUE(none.header("A").empty());
  EXPECT_TRUE(none.url().empty());
  char some[10];
  EXPECT_EQ(none.read(std::span(some), error), 0u);
  EXPECT_EQ(error, std::errc::bad_file_descriptor);
  EXPECT_EQ(error_of([&] { none.read_all(10); }), std::errc::bad_file_descriptor);
  EXPECT_FALSE(client.open("GET", "http://127.0.0.1:1/", error).is_open());
  EXPECT_EQ(error, std::errc::connection_refused);
  EXPECT_FALSE(client.open("GET", "http://127.0.0.1:1/", {{"a b", "c"}}, error).is_open());
  EXPECT_EQ(error, std::errc::invalid_argument);
  struct Short : BodySource {
    std::size_t read(std::span<std::byte>) override { return 0; }
    std::optional<std::uint64_t> size() const override { return 1; }
  } source;
  Silence silence;
  EXPECT_FALSE(client.open("PUT", silence.url(), {}, source, error).is_open());
  EXPECT_EQ(error, std::errc::invalid_argument);

  Silence half("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\ngood");
  ReplyStream reply = client.open({.url = half.url(), .timeout = 200ms}, error);
  EXPECT_FALSE(error) << error.message();
  EXPECT_TRUE(reply.is_open());
  EXPECT_EQ(reply.read(std::span(some), error), 4u);
  EXPECT_FALSE(error) << error.message();
  EXPECT_EQ(reply.read_all(10, error), "");
  EXPECT_EQ(error, std::errc::timed_out);
  ReplyStream put = client.open("PUT", half.url(), {}, "x", error);
  EXPECT_FALSE(error) << error.message();
  EXPECT_EQ(put.status(), 200);
}

RT_TEST(ClientErrors, OfABodySourceStayWhatTheyAre) {
  struct Mine : std::system_error {
    using std::system_error::system_error;
  };
  struct Broken : BodySource {
    std::size_t read(std::span<std::byte>) override {
      throw Mine(std::make_error_code(std::errc::io_error), "mine");
    }
  } broken;
  Silence silence;
  Client client;
  EXPECT_THROW(client.open({.method = "POST", .url = silence.url(), .source = &broken}), Mine);
}

RT_TEST(ClientErrors, OfABodySourceAreNotTakenForTheServers) {
  struct Broken : BodySource {
    explicit Broken(std::errc its) : error(its) {}
    std::size_t read(std::span<std::byte>) override {
      throw std::system_error(std::make_error_code(error), "the body comes from somebody else");
    }
    const std::errc error;
  };
  Silence silence;
  Client client;
  for (std::errc error : {std::errc::connection_reset, std::errc::broken_pipe}) {
    Broken broken(error);
    EXPECT_EQ(error_of([&] {
                (void)client.open(
                    {.method = "POST", .url = silence.url(), .source = &broken, .timeout = 2s});
              }),
              error);
  }
}

// ---- replies that are unusual

RT_TEST(ClientReplies, AReasonMayBeLeftOut) {
  for (const char* line : {"HTTP/1.1 200", "HTTP/1.1 200 ", "HTTP/1.0 200"}) {
    Silence silence(std::string("HTTP/1.1 100\r\n\r\n") + line +
                    "\r\nContent-Length: 4\r\n\r\ngood");
    Client client;
    Reply reply = client.get(silence.url());
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "good");
  }
  for (const char* line :
       {"HTTP/1.1 20", "HTTP/1.1 2000", "HTTP/1.1", "HTTP/1.1200", "HTTP/1.1 200x"}) {
    Silence silence(std::string(line) + "\r\nContent-Length: 4\r\n\r\ngood");
    Client client;
    EXPECT_THROW(client.get(silence.url()), ProtocolError) << line;
  }
}

RT_TEST(ClientReplies, AStatusBelow100IsNoAnnouncement) {
  for (const char* status : {"000", "099"}) {
    Silence silence(std::string("HTTP/1.1 ") + status +
                    " x\r\nContent-Length: 42\r\n\r\n"
                    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
    Client client;
    EXPECT_THROW(client.get(silence.url()), ProtocolError) << status;
  }
}

RT_TEST(ClientReplies, TrailersKeepToTheLimitsOfAHeader) {
  const std::string chunks =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n0\r\n";
  auto body_with = [&](const std::string& trailer) {
    Silence silence(chunks + trailer + "\r\n");
    Client client(ClientOptions{.max_header_bytes = 1000});
    return client.get(silence.url()).body;
  };
  EXPECT_EQ(body_with(""), "good");
  EXPECT_EQ(body_with("A: b\r\nC: d\r\n"), "good");
  EXPECT_THROW(body_with("A: " + std::string(1000, 'x') + "\r\n"), ProtocolError);
  EXPECT_THROW(
      body_with("A: " + std::string(600, 'x') + "\r\nB: " + std::string(600, 'x') + "\r\n"),
      ProtocolError);
  EXPECT_THROW(body_with("A: b\r\n folded\r\n"), ProtocolError);
}

RT_TEST(ClientReplies, AReplyIsNotAnnouncedWithoutEnd) {
  std::string interim;
  for (int i = 0; i < 1000; ++i) interim += "HTTP/1.1 100 Continue\r\n\r\n";
  Silence silence(interim);
  Client client(ClientOptions{.timeout = 0ms});
  EXPECT_THROW(client.get(silence.url()), ProtocolError);
}

}  // namespace
}  // namespace magpie::http
