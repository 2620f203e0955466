// reverse_proxy.cc: passes requests on to servers behind it, in turn, as they come: bodies stream
// through in both directions. A server that does not answer is passed over for a while. Made to be
// copied: what clients say does not decide whom the proxy asks, nor what the servers behind believe
// of them.
#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

using namespace magpie;
using namespace std::chrono_literals;

namespace {

// The body of the client's request, read when the server behind wants more of it. What goes wrong
// with the client is kept apart from what goes wrong with the server: otherwise a bad client would
// make a good server look broken.
struct PassedOn : http::BodySource {
  explicit PassedOn(http::Request& its) : request(its) {}
  std::size_t read(std::span<std::byte> into) override {
    const auto began = std::chrono::steady_clock::now();
    try {
      std::size_t n = request.read(into);
      waited += std::chrono::steady_clock::now() - began;
      return n;
    } catch (...) {
      fault_of_client = std::current_exception();
      throw;
    }
  }
  std::optional<std::uint64_t> size() const override { return request.content_length(); }
  http::Request& request;
  std::exception_ptr fault_of_client;
  std::chrono::steady_clock::duration waited{0};  // for the client
};

bool same_name(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

// Fields that are between two neighbours and not passed on: those of HTTP itself, and what
// `Connection` names.
bool is_for_one_hop(std::string_view name, const http::Headers& headers) {
  for (const char* mine : {"connection", "keep-alive", "transfer-encoding", "content-length", "te",
                           "trailer", "upgrade", "proxy-authenticate", "proxy-authorization",
                           "proxy-connection", "expect", "host"}) {
    if (same_name(name, mine)) return true;
  }
  for (const auto& [field, value] : headers) {
    if (!same_name(field, "connection")) continue;
    for (std::string_view rest = value; !rest.empty();) {
      std::string_view one = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(one.size() + 1, rest.size()));
      while (one.starts_with(' ') || one.starts_with('\t')) one.remove_prefix(1);
      while (one.ends_with(' ') || one.ends_with('\t')) one.remove_suffix(1);
      if (same_name(name, one)) return true;
    }
  }
  return false;
}

// Fields by which servers behind are told who asks. Clients may not set them: they would be
// believed.
bool tells_of_client(std::string_view name) {
  for (const char* ours :
       {"forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"}) {
    if (same_name(name, ours)) return true;
  }
  return false;
}

// "127.0.0.1:1234" or "[::1]:1234" without the port.
std::string host_of(const std::string& address) { return address.substr(0, address.rfind(':')); }

class Proxy {
 public:
  explicit Proxy(std::vector<std::string> roots, std::chrono::milliseconds timeout = 30s)
      : timeout_(timeout) {
    for (std::string& root : roots) behind_.push_back(std::make_unique<Behind>(std::move(root)));
  }

  void operator()(http::Request& req, http::Response& res) {
    PassedOn body(req);
    std::optional<http::ReplyStream> reply;
    for (std::size_t tries = 0; tries < behind_.size() && !reply; ++tries) {
      Behind& one = *behind_[next_++ % behind_.size()];
      try {
        one.breaker.call([&] {
          try {
            reply = ask(one, req, body);
          } catch (const std::system_error& error) {
            // Most of the time was the client's.
            if (error.code() == std::errc::timed_out && body.waited > timeout_ / 2)
              body.fault_of_client = std::make_exception_ptr(http::StatusError(408));
            if (!body.fault_of_client) throw;
          } catch (...) {
            if (!body.fault_of_client) throw;
          }
        });
      } catch (const CircuitOpen&) {
        continue;
      } catch (const http::ProtocolError&) {
      } catch (const std::system_error&) {
      }
      if (body.fault_of_client) std::rethrow_exception(body.fault_of_client);
      // It may have done what it was asked to, and some of the body is gone.
      if (!reply && (req.content_length() != 0 || !may_be_repeated(req.method()))) break;
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

  static bool may_be_repeated(const std::string& method) {
    return method == "GET" || method == "HEAD" || method == "OPTIONS";
  }

  http::ReplyStream ask(Behind& one, http::Request& req, PassedOn& body) {
    const http::Headers from_client = req.headers();
    http::Headers headers;
    for (const auto& [name, value] : from_client) {
      if (!is_for_one_hop(name, from_client) && !tells_of_client(name)) headers.add(name, value);
    }
    headers.set("X-Forwarded-For", host_of(req.remote_address()));
    headers.set("X-Forwarded-Host", req.host());
    // A target begins with /, so the root decides who is asked, whatever the client says.
    const std::string url = one.root + req.target();
    if (req.content_length() == 0) return client_.open(req.method(), url, headers);
    return client_.open(req.method(), url, headers, body);
  }

  void pass_back(http::ReplyStream& reply, http::Response& res) {
    res.status(reply.status());
    for (const auto& [name, value] : reply.headers()) {
      if (!is_for_one_hop(name, reply.headers()) && name != "Date") res.add_header(name, value);
    }
    std::array<char, 16 * 1024> some;
    while (std::size_t n = reply.read(std::span<char>(some))) {
      res.write(std::string_view(some.data(), n));
      res.flush();
    }
  }

  const std::chrono::milliseconds timeout_;
  http::Client client_{{.timeout = timeout_, .max_redirects = 0}};
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
        if (req.path() == "/headers") {
          res.send(req.header("X-Forwarded-For") + " " + req.header("X-Secret") + " " +
                   req.header("X-Kept"));
          return;
        }
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

    // Who asks is what the proxy says; what is for the proxy alone stays there.
    http::Reply reply = client.get(started.root + "/headers", {{"X-Forwarded-For", "1.2.3.4"},
                                                               {"X-Secret", "of this hop"},
                                                               {"X-Kept", "kept"},
                                                               {"Connection", "X-Secret"}});
    right = right && reply.body == "127.0.0.1  kept";
    // A client does not choose whom the proxy asks.
    auto raw = net::TcpConn::connect(started.root.substr(7));
    raw.set_deadline(10s);
    raw.write("GET 0/x://y/z HTTP/1.1\r\nHost: x\r\n\r\n");
    std::array<char, 12> line;
    raw.read_exact(std::as_writable_bytes(std::span(line)));
    right = right && std::string_view(line.data(), line.size()) == "HTTP/1.1 400";

    // Clients that send their bodies too slowly do not make the server behind look broken.
    http::Server impatient_front;
    Proxy impatient({started_b.root}, 200ms);
    impatient_front.handle("/{path...}",
                           [&](http::Request& req, http::Response& res) { impatient(req, res); });
    Started impatient_started(impatient_front);
    for (int i = 0; i < 3; ++i) {
      auto slow = net::TcpConn::connect(impatient_started.root.substr(7));
      slow.set_deadline(10s);
      slow.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n");
      sleep_for(300ms);
      slow.write("ab");
      slow.read_exact(std::as_writable_bytes(std::span(line)));
      right = right && std::string_view(line.data(), line.size()) == "HTTP/1.1 408";
    }
    right = right && client.get(impatient_started.root + "/d").status == 200;

    started_a.reset();  // one of them is gone; nobody notices
    for (int i = 0; i < 10; ++i)
      right = right && client.get(started.root + "/c").header("X-Served-By") == "b";

    std::puts(right ? "all as expected" : "something is wrong");
    return right ? 0 : 1;
  });
}
