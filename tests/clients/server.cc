// server.cc: what tests/clients/run talks to with other people's programs. Arguments: certificate
// and key. Prints the ports of HTTP and HTTPS, and serves until its input ends.
#include <magpie/http.h>
#include <magpie/magpie.h>

#include <cstdio>
#include <string>

using namespace magpie;

namespace {

void add_routes(http::Server& server) {
  using http::Request;
  using http::Response;
  server.handle("GET /hello", [](Request&, Response& res) { res.send("hello, world\n"); });
  server.handle("POST /length", [](Request& req, Response& res) {
    std::size_t sum = 0;
    std::byte buffer[4096];
    while (std::size_t count = req.read(buffer)) sum += count;
    res.send(std::to_string(sum) + "\n");
  });
  server.handle("GET /chunks", [](Request&, Response& res) {
    for (int i = 0; i < 100; ++i) {
      res.write("chunk " + std::to_string(i) + "\n");
      if (i % 10 == 0) res.flush();
    }
  });
}

}  // namespace

int main(int, char** argv) {
  run([&] {
    http::Server plain, secure;
    add_routes(plain);
    add_routes(secure);
    plain.listen("127.0.0.1:0");
    secure.listen("127.0.0.1:0", net::TlsServerConfig({.certificate_file = argv[1],
                                                       .key_file = argv[2],
                                                       .alpn = {"http/1.1", "http/1.0"}}));
    std::printf("%d %d\n", plain.local_address().port(), secure.local_address().port());
    std::fflush(stdout);
    WaitGroup serving;
    serving.go([&] { plain.serve(); });
    serving.go([&] { secure.serve(); });
    blocking([] {
      while (std::getchar() != EOF) {
      }
    });
    plain.shutdown(std::chrono::seconds(5));
    secure.shutdown(std::chrono::seconds(5));
    serving.wait();
  });
}
