// http_three_styles.cc: three ways to meet more requests than can be served well.
//
//   unlimited    a goroutine per request, all at once: each is slower the more there are
//   limited      so many at a time, the others are told 503 at once and may come again
//   queued       a pool of workers; whoever has waited too long for one is told 503
#include <magpie/http.h>
#include <magpie/magpie.h>

#include <atomic>
#include <cstdio>
#include <string>

using namespace magpie;
using namespace std::chrono_literals;

namespace {

constexpr int kAtOnce = 4;
constexpr int kClients = 32;
constexpr auto kWork = 20ms;

std::atomic<int> working{0}, most{0};

// Something that takes time, and that too many at once would not do well.
void work() {
  int now = ++working;
  for (int before = most; before < now && !most.compare_exchange_weak(before, now);) {
  }
  sleep_for(kWork);
  --working;
}

struct Outcome {
  int done = 0, refused = 0, most = 0;
};

// Many clients ask at the same moment.
Outcome try_out(http::Server& server) {
  server.listen("127.0.0.1:0");
  JoinHandle<void> serving = spawn([&] { server.serve(); });
  const std::string url = "http://" + server.local_address().to_string() + "/work";
  most = 0;
  http::Client client;
  std::atomic<int> done{0}, refused{0};
  WaitGroup clients;
  for (int i = 0; i < kClients; ++i) {
    clients.go([&] {
      http::Reply reply = client.get(url);
      if (reply.status == 200) ++done;
      if (reply.status == 503) ++refused;
    });
  }
  clients.wait();
  server.shutdown(1s);
  serving.join();
  return {done, refused, most};
}

Outcome unlimited() {
  http::Server server;
  server.handle("GET /work", [](http::Request&, http::Response& res) {
    work();
    res.send("done");
  });
  return try_out(server);
}

Outcome limited() {
  http::Server server;
  server.use(http::limit_concurrency(kAtOnce));
  server.handle("GET /work", [](http::Request&, http::Response& res) {
    work();
    res.send("done");
  });
  return try_out(server);
}

Outcome queued() {
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
  return try_out(server);
}

bool show(const char* name, const Outcome& o, bool right) {
  std::printf("%-10s done %2d, refused %2d, at most %2d at a time%s\n", name, o.done, o.refused,
              o.most, right ? "" : "  <-- not as expected");
  return right && o.done + o.refused == kClients && o.done > 0;
}

}  // namespace

int main() {
  return run([] {
    Outcome a = unlimited(), b = limited(), c = queued();
    bool right = show("unlimited", a, a.refused == 0);
    right = show("limited", b, b.most <= kAtOnce) && right;
    right = show("queued", c, c.most <= kAtOnce) && right;
    return right ? 0 : 1;
  });
}
