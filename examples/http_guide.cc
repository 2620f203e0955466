// http_guide.cc: the pieces of code about HTTP and TLS that the guide shows (docs/guide/), as one
// program.
#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net/tls.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

using namespace magpie;
using namespace std::chrono_literals;

namespace {

void expect(bool what, const char* text) {
  if (what) return;
  std::printf("not so: %s\n", text);
  std::exit(1);
}

std::string url_of(http::Server& server, const std::string& path) {
  return "http://" + server.local_address().to_string() + path;
}

const std::string address = "127.0.0.1:0";  // any port that is free
const std::string secret = "Bearer sesame";

void hello() {
  http::Server server;
  server.use(http::access_log(std::cout));
  server.handle("GET /hello/{name}", [](http::Request& req, http::Response& res) {
    res.header("Content-Type", "text/plain").send("hello " + req.param("name"));
  });
  server.listen(address);
  JoinHandle<void> serving = spawn([&] {
    server.serve();  // until a goroutine or thread calls server.shutdown(10s)
  });
  expect(http::Client().get(url_of(server, "/hello/Ada")).body == "hello Ada", "hello");
  server.shutdown(10s);
  serving.join();
}

void only_with_the_secret() {
  http::Server server;
  server.use([](http::Handler next) -> http::Handler {
    return [next](http::Request& req, http::Response& res) {
      if (req.header("Authorization") != secret) throw http::StatusError(401);
      next(req, res);
    };
  });
  server.handle("GET /", [](http::Request&, http::Response& res) { res.send("open"); });
  server.listen(address);
  JoinHandle<void> serving = spawn([&] { server.serve(); });
  http::Client client;
  expect(client.get(url_of(server, "/")).status == 401, "closed without the secret");
  http::Reply open = client.request("GET", url_of(server, "/"), {{"Authorization", secret}}, "");
  expect(open.body == "open", "open with it");
  server.shutdown(10s);
  serving.join();
}

void on_the_internet() {
  http::Server server;
  server.use(http::access_log(std::cout));
  server.use(
      http::limit_per_address({.connections = 100, .requests_per_second = 50, .burst = 200}));
  server.use(http::limit_concurrency(1000));
  server.use(http::timeout(30s));
  server.handle("GET /", [](http::Request&, http::Response& res) { res.send("safe"); });
  server.listen(address);
  JoinHandle<void> serving = spawn([&] { server.serve(); });
  expect(http::Client().get(url_of(server, "/")).body == "safe", "served");
  server.shutdown(10s);
  serving.join();
}

void ask_others() {
  http::Server server;
  server.handle("GET /", [](http::Request&, http::Response& res) { res.send("hello Ada"); });
  server.handle("PUT /", [](http::Request& req, http::Response& res) { res.send(req.body()); });
  server.listen(address);
  JoinHandle<void> serving = spawn([&] { server.serve(); });
  const std::string url = url_of(server, "/"), json = "{}";
  Context context = Context::background().with_cancel();
  http::Client client;
  client.set_timeout(5s);  // all of a request, redirects and body included
  http::Reply reply = client.get(url);
  if (reply.status == 200) std::puts(reply.body.c_str());
  client.request("PUT", url, {{"Content-Type", "application/json"}}, json);
  client.request({.url = url, .timeout = 2s, .context = context});
  server.shutdown(10s);
  serving.join();
}

// Never called: it needs a certificate.
[[maybe_unused]] void with_tls(http::Server& server, http::Client& client) {
  server.listen(":443",
                net::TlsServerConfig({.certificate_file = "fullchain.pem", .key_file = "key.pem"}));
  // verified against whom the system trusts, or ClientOptions::tls
  http::Reply reply = client.get("https://example.org/");
  std::puts(reply.body.c_str());
}

[[maybe_unused]] void tls_without_http() {
  // verified against whom the system trusts
  net::TlsConn conn = net::TlsConn::connect("example.org:443");
  net::TlsListener listener = net::TlsListener::bind(
      ":443", net::TlsServerConfig({.certificate_file = "fullchain.pem", .key_file = "key.pem"}));
}

void until_told(const Signals& signals) {
  http::Server server;
  server.handle("GET /", [](http::Request&, http::Response& res) { res.send("here\n"); });
  server.listen(address);
  server.run_until(signals, 20s);
}

void with_readiness(const Signals& signals) {
  http::Server server;
  std::atomic<bool> ready{true};
  server.handle("GET /ready", [&](auto&, auto& res) { res.status(ready ? 200 : 503).send(""); });
  server.listen(address);
  const auto notice = 5ms;  // others learn that we go: seconds, in Kubernetes
  go([&] {
    (void)signals.channel().recv();
    ready = false;
    sleep_for(notice);
    server.shutdown(20s);
  });
  server.serve();
}

}  // namespace

int main() {
  Signals signals({SIGTERM, SIGINT});
  run([&] {
    hello();
    only_with_the_secret();
    on_the_internet();
    ask_others();
    std::raise(SIGTERM);
    until_told(signals);
    std::raise(SIGTERM);
    with_readiness(signals);
    std::puts("the guide is right");
  });
}
