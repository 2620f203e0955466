// http_trace_id.cc: a trace id follows a request through goroutines, a pool, a channel and HTTP.
//
// A Local has the id of the goroutine's request. carry() hands it on where work changes goroutines;
// a message takes it along; a header takes it to the next service. A span of OpenTelemetry, or any
// other context of a tracing library, travels the same way. Look at the five lines of request 0.
#include <magpie/http.h>
#include <magpie/magpie.h>

#include <atomic>
#include <cstdio>
#include <string>

using namespace magpie;

constexpr int kRequests = 2000;
Local<std::string> trace_id;
std::atomic<int> lines[kRequests];  // of each request

void log(const char* where) {
  if (*trace_id == "0") std::printf("[%s] %s\n", trace_id->c_str(), where);
  ++lines[std::stoi(*trace_id)];
}

http::Handler with_trace_id(http::Handler next) {
  return [next](http::Request& req, http::Response& res) {
    trace_id.set(req.header("X-Trace-Id"));
    next(req, res);
  };
}

int main() {
  return run([] {
    WorkerPool pool(2, 8);
    Chan<std::string> audit;
    JoinHandle<void> auditor = spawn([&] {
      for (std::string& id : audit) {
        trace_id.set(id);
        log("audit");
      }
    });
    http::Client client;
    http::Server server;
    auto ask = [&](const char* path) {  // with the caller's trace id
      const std::string url = "http://" + server.local_address().to_string() + path;
      return client.get(url, {{"X-Trace-Id", *trace_id}}).body;
    };
    server.use(with_trace_id);
    server.handle("GET /", [&](http::Request&, http::Response& res) {
      log("handler");
      WaitGroup parts;
      parts.go(trace_id.carry([] { log("goroutine"); }));
      pool.submit(trace_id.carry([] { log("worker"); }));
      audit.send(*trace_id);
      parts.wait();
      res.send(ask("/behind"));
    });
    server.handle("GET /behind", [](http::Request&, http::Response& res) {
      log("the service behind");
      res.send(*trace_id);
    });
    server.listen("127.0.0.1:0");
    JoinHandle<void> serving = spawn([&] { server.serve(); });
    std::atomic<int> right = 0;
    TaskGroup clients;
    clients.set_limit(100);  // connections
    for (int i = 0; i < kRequests; ++i)
      clients.go([&, id = std::to_string(i)] {
        trace_id.set(id);
        right += ask("/") == id;
      });
    clients.wait();
    audit.close();
    auditor.join();
    pool.wait();
    server.shutdown(std::chrono::seconds(10));
    for (const auto& count : lines) right += count == 5;
    return right == 2 * kRequests ? 0 : 1;
  });
}
