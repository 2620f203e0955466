// http_three_styles.cc: three ways to meet more requests than can be served well.
//
//   unlimited    a goroutine per request, all at once: each is slower the more there are
//   limited      so many at a time, the others are told 503 at once and may come again
//   queued       a pool of workers; whoever has waited too long for one is told 503
#include <magpie/http.h>
#include <magpie/magpie.h>

#include <cstdio>

using namespace magpie;
using namespace std::chrono_literals;

constexpr int kAtOnce = 4, kClients = 32;
constexpr auto kWork = 20ms;
std::atomic<int> working{0}, most{0};

// Something that takes time, and that too many at once would not do well.
void work() {
  int now = ++working;
  for (int before = most; before < now && !most.compare_exchange_weak(before, now);) continue;
  sleep_for(kWork);
  --working;
}

// Many clients ask at the same moment. Each has to get an answer.
bool try_out(const char* name, http::Server& server, int least_done, int most_at_once) {
  server.listen("127.0.0.1:0");
  JoinHandle<void> serving = spawn([&] { server.serve(); });
  const std::string url = "http://" + server.local_address().to_string() + "/work";
  std::atomic<int> done{0}, refused{0};
  http::Client client;
  WaitGroup clients;
  most = 0;
  for (int i = 0; i < kClients; ++i) {
    clients.go([&] {
      const int status = client.get(url).status;
      done += status == 200;
      refused += status == 503;
    });
  }
  clients.wait();
  server.shutdown(1s);
  serving.join();
  std::printf("%-9s done %2d, refused %2d, at most %2d at a time\n", name, +done, +refused, +most);
  return done >= least_done && done + refused == kClients && most <= most_at_once;
}

bool unlimited() {
  http::Server server;
  server.handle("GET /work", [](http::Request&, http::Response& res) {
    work();
    res.send("done");
  });
  return try_out("unlimited", server, kClients, kClients);
}

bool limited() {
  http::Server server;
  server.use(http::limit_concurrency(kAtOnce));
  server.handle("GET /work", [](http::Request&, http::Response& res) {
    work();
    res.send("done");
  });
  return try_out("limited", server, 1, kAtOnce);
}

bool queued() {
  WorkerPool pool(kAtOnce, 0);
  http::Server server;
  server.handle("GET /work", [&](http::Request&, http::Response& res) {
    Chan<void> finished;
    auto job = [finished] {
      work();
      finished.close();
    };
    if (!pool.try_submit_for(2 * kWork, job)) throw http::StatusError(503, "too many are waiting");
    finished.recv();
    res.send("done");
  });
  return try_out("queued", server, 1, kAtOnce);
}

int main() {
  return run([] { return unlimited() & limited() & queued() ? 0 : 1; });
}
