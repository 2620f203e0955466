// main.cc: the proxy of proxy.h before two servers, and clients that try to mislead it.
#include <magpie/net.h>

#include <cstdio>
#include <set>

#include "proxy.h"

using namespace magpie;
using namespace std::chrono_literals;
using proxy::Proxy;

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

int main() {
  return run([] {
    auto serve_as = [](http::Server& server, const char* name) {
      server.handle("/{path...}", [name](http::Request& req, http::Response& res) {
        if (req.path() == "/headers") {
          res.send(req.header("X-Forwarded-For") + " " + req.header("X-Secret") + " " +
                   req.header("X-Kept") + req.header("X_Forwarded_For") +
                   req.header("X-Forwarded-Port"));
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
                                                               {"X_Forwarded_For", "1.2.3.4"},
                                                               {"X-Forwarded-Port", "1"},
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
