// http_shutdown.cc: a web server that ends as systemd and Kubernetes ask it to: no request is lost.
//
// With an address ("127.0.0.1:8080") it serves until it is told to end: try ctrl-c, or kill, with a
// request under way. Without one it asks itself, and sends itself a SIGTERM while the answer is
// still to come.
#include <magpie/http.h>
#include <magpie/magpie.h>
#include <unistd.h>

#include <cstdio>
#include <string>

using namespace magpie;
using namespace std::chrono_literals;

int main(int argc, char** argv) {
  Signals signals({SIGTERM, SIGINT});
  return run([&] {
    http::Server server;
    Chan<void> begun(1);
    server.handle("GET /slow", [&](http::Request&, http::Response& res) {
      (void)begun.try_send();
      sleep_for(50ms);
      res.send("it was worth the wait\n");
    });
    server.listen(argc > 1 ? argv[1] : "127.0.0.1:0");

    JoinHandle<std::string> asking = spawn([&, alone = argc > 1] {
      if (alone) return std::string();
      http::Client client;
      return client.get("http://" + server.local_address().to_string() + "/slow").body;
    });
    JoinHandle<void> stopping = spawn([&, alone = argc > 1] {
      if (alone) return;
      begun.recv();
      kill(getpid(), SIGTERM);
    });
    const bool all_ended = server.run_until(signals, 10s);
    std::puts(all_ended ? "all requests were answered" : "some requests were cut off");
    return all_ended && (argc > 1 || asking.join() == "it was worth the wait\n") ? 0 : 1;
  });
}
