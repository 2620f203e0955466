// server.cc: the server that tests/hostile/run attacks. Arguments: certificate, key, and what every
// time limit of ServerOptions is divided by. Prints the ports of HTTP and HTTPS. Answers each line
// of its input with a line of counts, and serves until its input ends.
#include <magpie/http.h>
#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace magpie;
using namespace std::chrono_literals;

namespace {

// Only added to and printed, so relaxed is enough: the numbers are compared when nothing runs.
struct Counts {
  std::atomic<long> begun{0};  // requests that reached the middleware, refused ones too
  std::atomic<long> ended{0};
  std::atomic<long> good{0};  // answers to good clients
};

constexpr std::size_t kLargeBytes = 8 << 20;

http::Middleware count_requests(Counts& counts) {
  return [&counts](http::Handler next) -> http::Handler {
    return [&counts, next](http::Request& req, http::Response& res) {
      struct Ended {
        std::atomic<long>& count;
        ~Ended() { count.fetch_add(1, std::memory_order_relaxed); }
      };
      counts.begun.fetch_add(1, std::memory_order_relaxed);
      Ended ended{counts.ended};
      next(req, res);
    };
  };
}

void add_routes(http::Server& server, Counts& counts) {
  using http::Request;
  using http::Response;
  server.use(count_requests(counts));
  server.handle("GET /good/{text}", [&counts](Request& req, Response& res) {
    counts.good.fetch_add(1, std::memory_order_relaxed);
    res.send(req.param("text"));
  });
  server.handle("GET /echo/{text}",
                [](Request& req, Response& res) { res.send(req.param("text")); });
  server.handle("POST /length",
                [](Request& req, Response& res) { res.send(std::to_string(req.body().size())); });
  server.handle("GET /large", [](Request&, Response& res) {
    const std::string part(64 * 1024, 'x');
    for (std::size_t sent = 0; sent < kLargeBytes; sent += part.size()) res.write(part);
  });
}

http::ServerOptions divided_by(int divisor) {
  http::ServerOptions options;
  for (std::chrono::milliseconds* time : {&options.header_timeout, &options.idle_timeout,
                                          &options.body_timeout, &options.write_timeout})
    *time /= divisor;
  return options;
}

void print(const Counts& counts, std::size_t connections) {
  std::printf("begun=%ld ended=%ld good=%ld connections=%zu goroutines=%zu\n",
              counts.begun.load(std::memory_order_relaxed),
              counts.ended.load(std::memory_order_relaxed),
              counts.good.load(std::memory_order_relaxed), connections, num_goroutines());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s CERTIFICATE KEY DIVISOR\n", argv[0]);
    return 2;
  }
  bool ended_in_time = false;
  run([&] {
    Counts counts;
    http::Server plain(divided_by(std::atoi(argv[3]))), secure(divided_by(std::atoi(argv[3])));
    add_routes(plain, counts);
    add_routes(secure, counts);
    plain.listen("127.0.0.1:0");
    secure.listen("127.0.0.1:0",
                  net::TlsServerConfig({.certificate_file = argv[1], .key_file = argv[2]}));
    std::printf("%d %d\n", plain.local_address().port(), secure.local_address().port());
    std::fflush(stdout);
    WaitGroup serving;
    serving.go([&] { plain.serve(); });
    serving.go([&] { secure.serve(); });
    const auto print_counts = [&] { print(counts, plain.connections() + secure.connections()); };
    char line[100];
    while (blocking([&] { return std::fgets(line, sizeof line, stdin); }) != nullptr)
      print_counts();
    ended_in_time = plain.shutdown(5s) && secure.shutdown(5s);
    serving.wait();
    print_counts();
  });
  return ended_in_time ? 0 : 1;
}
