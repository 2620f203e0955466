// http_bounded_queue.cc: a server with two workers and a queue of three. Who waits too long for a
// place is answered 503.
//
// The workers stand still until all clients have their place or their refusal. So of twelve
// requests two are worked on, three are queued, and seven are refused after their time.
#include <magpie/http.h>
#include <magpie/magpie.h>

#include <atomic>
#include <cstdio>
#include <string>

using namespace magpie;
using namespace std::chrono_literals;

int main() {
  constexpr int kRequests = 12, kWorkers = 2, kQueue = 3;
  return run([] {
    Chan<void> open;  // closed: the workers work
    WorkerPool pool(kWorkers, kQueue);
    http::Server server;
    server.handle("GET /", [&](http::Request&, http::Response& res) {
      Chan<void> finished;
      auto job = [&open, finished] {
        open.recv();
        finished.close();
      };
      if (!pool.try_submit_for(50ms, job)) throw http::StatusError(503, "the queue is full");
      finished.recv();
      res.send("done\n");
    });
    server.listen("127.0.0.1:0");
    JoinHandle<void> serving = spawn([&] { server.serve(); });
    const std::string url = "http://" + server.local_address().to_string() + "/";

    http::Client client;
    std::atomic<int> done = 0, refused = 0;
    WaitGroup clients;
    for (int i = 0; i < kRequests; ++i) {
      clients.go([&] {
        const int status = client.get(url).status;
        if (status == 200) ++done;
        if (status == 503) ++refused;
      });
    }
    while (refused < kRequests - kWorkers - kQueue) sleep_for(1ms);
    open.close();
    clients.wait();
    server.shutdown(10s);
    serving.join();
    std::printf("%d done, %d refused\n", done.load(), refused.load());
    return done == kWorkers + kQueue && refused == kRequests - kWorkers - kQueue ? 0 : 1;
  });
}
