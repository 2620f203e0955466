// http_three_styles.cc: three ways to meet more requests than can be served well.
//
//   unlimited    a goroutine per request, all at once: each is slower the more there are
//   limited      so many at a time, the others are told 503 at once and may come again
//   queued       a pool of workers, and a queue; who waits too long for a place is told 503
//
// The work stands still until each client has a place or its 503, so the numbers are certain.
#include <magpie/http.h>
#include <magpie/magpie.h>

#include <atomic>
#include <cstdio>
#include <string>

using namespace magpie;
using namespace std::chrono_literals;

constexpr int kAtOnce = 4, kQueue = 8, kClients = 32;
std::atomic<int> working{0};
Chan<void> may_end = Chan<void>::nil();

void work() {
  ++working;
  may_end.recv();  // until it is closed
  --working;
}

void handle(http::Request&, http::Response& res) {
  work();
  res.send("done");
}

// Many clients ask at the same moment. `places` of them are served, `at_once` at a time.
bool try_out(const char* name, http::Server& server, int places, int at_once) {
  may_end = Chan<void>();
  server.listen("127.0.0.1:0");
  JoinHandle<void> serving = spawn([&] { server.serve(); });
  const std::string url = "http://" + server.local_address().to_string() + "/work";
  std::atomic<int> answers[600] = {};  // by status
  http::Client client;
  WaitGroup clients;
  for (int i = 0; i < kClients; ++i) clients.go([&] { ++answers[client.get(url).status]; });
  while (working < at_once || answers[503] < kClients - places) sleep_for(1ms);
  const int most = working;
  may_end.close();
  clients.wait();
  server.shutdown(1s);
  serving.join();
  std::printf("%-9s done %2d, refused %2d, %2d at a time\n", name, +answers[200], +answers[503],
              most);
  return answers[200] == places && answers[503] == kClients - places && most == at_once;
}

int main() {
  return run([] {
    http::Server unlimited;
    unlimited.handle("GET /work", handle);
    http::Server limited;
    limited.use(http::limit_concurrency(kAtOnce));
    limited.handle("GET /work", handle);
    WorkerPool pool(kAtOnce, kQueue);
    http::Server queued;
    queued.handle("GET /work", [&](http::Request&, http::Response& res) {
      Chan<void> finished;
      auto job = [finished] {
        work();
        finished.close();
      };
      if (!pool.try_submit_for(40ms, job)) throw http::StatusError(503, "too many are waiting");
      finished.recv();
      res.send("done");
    });
    bool right = try_out("unlimited", unlimited, kClients, kClients);
    right &= try_out("limited", limited, kAtOnce, kAtOnce);
    right &= try_out("queued", queued, kAtOnce + kQueue, kAtOnce);
    return right ? 0 : 1;
  });
}
