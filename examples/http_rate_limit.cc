// http_rate_limit.cc: a server that answers so many requests a second, and the others 503 at once.
//
// A token bucket: five requests at once, then one every hundred seconds, so that the numbers below
// are certain. A client that is refused learns when to come again.
#include <magpie/http.h>
#include <magpie/magpie.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>

using namespace magpie;

namespace {

http::Middleware limit_rate(double per_second, std::int64_t burst) {
  auto limiter = std::make_shared<RateLimiter>(per_second, burst);
  return [limiter](http::Handler next) {
    return [limiter, next](http::Request& req, http::Response& res) {
      if (limiter->allow()) return next(req, res);
      res.status(503).header("Retry-After", "100");
      res.send("too many requests\n");
    };
  };
}

}  // namespace

int main() {
  constexpr int kRequests = 40, kBurst = 5;
  return run([] {
    http::Server server;
    server.use(limit_rate(0.01, kBurst));
    server.handle("GET /", [](http::Request&, http::Response& res) { res.send("welcome\n"); });
    server.listen("127.0.0.1:0");
    JoinHandle<void> serving = spawn([&] { server.serve(); });
    const std::string url = "http://" + server.local_address().to_string() + "/";

    http::Client client;
    std::atomic<int> answered = 0, refused = 0;
    WaitGroup clients;
    for (int i = 0; i < kRequests; ++i) {
      clients.go([&] {
        http::Reply reply = client.get(url);
        if (reply.status == 200) ++answered;
        if (reply.status == 503 && reply.header("Retry-After") == "100") ++refused;
      });
    }
    clients.wait();
    server.shutdown(std::chrono::seconds(10));
    serving.join();
    std::printf("%d answered, %d refused\n", answered.load(), refused.load());
    // A slow machine may have taken so long that the bucket got another token.
    return answered >= kBurst && answered <= kBurst + 3 && answered + refused == kRequests ? 0 : 1;
  });
}
