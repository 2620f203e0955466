// magpie.cc: the server of the HTTP benchmarks: "hello, world" on 127.0.0.1. port=N procs=N hogs=N
// (endless loops beside it). Prints its port, and serves until it is killed.
#include <magpie/http.h>
#include <magpie/magpie.h>

#include <cstdio>
#include <string>

#include "measure.h"

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 2));
  long hogs = args.text("hogs", "").empty() ? 0 : args.number("hogs", 0);
  magpie::run(magpie::Options{.procs = procs}, [&] {
    magpie::http::Server server;
    server.handle("GET /", [](magpie::http::Request&, magpie::http::Response& res) {
      res.header("Content-Type", "text/plain");
      res.send("hello, world\n");
    });
    server.listen("127.0.0.1:0");
    std::printf("port=%d\n", server.local_address().port());
    std::fflush(stdout);
    for (long i = 0; i < hogs; ++i) {
      magpie::go([] {
        for (;;) __asm__ volatile("");
      });
    }
    server.serve();
  });
}
