// main.cc: a service that answers so many requests a second, and refuses the others at once.
#include <magpie/http.h>
#include <magpie/magpie.h>

#include <csignal>
#include <cstdio>

using namespace magpie;
using namespace std::chrono_literals;

int main() {
  Signals signals({SIGTERM, SIGINT});
  return run([&] {
    RateLimiter limiter(50, 20);  // fifty a second, and twenty at once
    http::Server server;
    server.handle("GET /hello/{name}", [&](http::Request& req, http::Response& res) {
      if (!limiter.allow()) throw http::StatusError(503, "too many requests");
      sleep_for(5ms);  // stands for the work: a database, another service
      res.send("hello, " + req.param("name") + "\n");
    });
    server.listen("127.0.0.1:8080");
    std::puts("http://127.0.0.1:8080/hello/you");
    return server.run_until(signals, 5s) ? 0 : 1;
  });
}
