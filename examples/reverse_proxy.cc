// reverse_proxy.cc: passes requests on to servers behind it, in turn, as they come: bodies stream through in both
// directions. A server that does not answer is passed over for a while.
#include <magpie/http.h>
#include <magpie/magpie.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

using namespace magpie;
using namespace std::chrono_literals;

namespace {

// The body of the client's request, read when the server behind wants more of it.
struct PassedOn : http::BodySource {
  explicit PassedOn(http::Request& its) : request(its) {}
  std::size_t read(std::span<std::byte> into) override { return request.read(into); }
  std::optional<std::uint64_t> size() const override { return request.content_length(); }
  http::Request& request;
};

bool is_for_one_hop(const std::string& name) {
  for (const char* mine :
       {"connection", "keep-alive", "transfer-encoding", "content-length", "te", "trailer",
        "upgrade", "proxy-authorization", "proxy-connection", "expect", "host"}) {
    if (name.size() == std::char_traits<char>::length(mine) &&
        std::equal(name.begin(), name.end(), mine,
                   [](char a, char b) { return (a | 0x20) == (b | 0x20); }))
      return true;
  }
  return false;
}

class Proxy {
 public:
  explicit Proxy(std::vector<std::string> roots) {
    for (std::string& root : roots) behind_.push_back(std::make_unique<Behind>(std::move(root)));
  }

  void operator()(http::Request& req, http::Response& res) {
    std::optional<http::ReplyStream> reply;
    for (std::size_t tries = 0; tries < behind_.size() && !reply; ++tries) {
      Behind& one = *behind_[next_++ % behind_.size()];
      try {
        reply = one.breaker.call([&] { return ask(one, req); });
      } catch (const CircuitOpen&) {
      } catch (const http::ProtocolError&) {
      } catch (const std::system_error&) {
        if (req.content_length() != 0) break;  // some of the body may be gone
      }
    }
    if (!reply) throw http::StatusError(502);
    pass_back(*reply, res);
  }

 private:
  struct Behind {
    explicit Behind(std::string its) : root(std::move(its)) {}
    std::string root;
    CircuitBreaker breaker{{.failures = 2, .open_for = 5s, .trials = 1}};
  };

  http::ReplyStream ask(Behind& one, http::Request& req) {
    http::Headers headers;
    for (const auto& [name, value] : req.headers()) {
      if (!is_for_one_hop(name)) headers.add(name, value);
    }
    headers.set("X-Forwarded-For", req.remote_address());
    const std::string url = one.root + req.target();
    if (req.content_length() == 0) return client_.open(req.method(), url, headers);
    PassedOn body(req);
    return client_.open(req.method(), url, headers, body);
  }

  void pass_back(http::ReplyStream& reply, http::Response& res) {
    res.status(reply.status());
    for (const auto& [name, value] : reply.headers()) {
      if (!is_for_one_hop(name) && name != "Date") res.add_header(name, value);
    }
    std::array<char, 16 * 1024> some;
    while (std::size_t n = reply.read(std::span<char>(some))) {
      res.write(std::string_view(some.data(), n));
      res.flush();
    }
  }

  http::Client client_{{.max_redirects = 0}};
  std::vector<std::unique_ptr<Behind>> behind_;
  std::atomic<std::size_t> next_{0};
};

struct Started {
  explicit Started(http::Server& its) : server(its) {
    server.listen("127.0.0.1:0");
    root = "http://" + server.local_address().to_string();
    serving = spawn([this] { server.serve(); });
  }
  ~Started() { server.shutdown(1s); }
  http::Server& server;
  std::string root;
  JoinHandle<void> serving;
};

}  // namespace

int main() {
  return run([] {
    auto serve_as = [](http::Server& server, const char* name) {
      server.handle("/{path...}", [name](http::Request& req, http::Response& res) {
        res.header("X-Served-By", name).send(req.method() + " " + req.path() + " " + req.body());
      });
    };
    http::Server a, b, front;
    serve_as(a, "a");
    serve_as(b, "b");
    auto started_a = std::make_unique<Started>(a);
    Started started_b(b);
    Proxy proxy({started_a->root, started_b.root});
    front.handle("/{path...}", [&](http::Request& req, http::Response& res) { proxy(req, res); });
    Started started(front);

    http::Client client;
    bool right = true;
    std::set<std::string> served_by;
    for (int i = 0; i < 10; ++i) {
      http::Reply reply = client.get(started.root + "/a/b?c");
      right = right && reply.status == 200 && reply.body == "GET /a/b ";
      served_by.insert(reply.header("X-Served-By"));
    }
    right = right && served_by.size() == 2;
    std::string large(1'000'000, 'x');
    right = right && client.post(started.root + "/large", large).body == "POST /large " + large;

    started_a.reset();  // one of them is gone; nobody notices
    for (int i = 0; i < 10; ++i)
      right = right && client.get(started.root + "/c").header("X-Served-By") == "b";

    std::puts(right ? "all as expected" : "something is wrong");
    return right ? 0 : 1;
  });
}
