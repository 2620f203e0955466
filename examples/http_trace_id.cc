// http_trace_id.cc: a trace id follows a request through goroutines, a pool, a channel and HTTP.
//
// A Local has the id of the goroutine's request. carry() hands it on where work changes goroutines;
// a message takes it along; a header takes it to the next service. A span of OpenTelemetry, or any
// other context of a tracing library, travels the same way. Look at the lines: one id in each.
#include <magpie/http.h>
#include <magpie/magpie.h>

#include <cstdio>
#include <string>

using namespace magpie;

Local<std::string> trace_id;
std::atomic<int> lines{0};
Mutex print_lock;

void log(const char* where) {
  std::lock_guard hold(print_lock);
  std::printf("[%s] %s\n", trace_id->c_str(), where);
  if (!trace_id->empty()) ++lines;
}

http::Handler with_trace_id(http::Handler next) {
  return [next](http::Request& req, http::Response& res) {
    trace_id.set(req.header("X-Trace-Id"));
    next(req, res);
  };
}

struct Message {
  std::string trace_id, text;
};

int main() {
  return run([] {
    WorkerPool pool(2, 8);
    Chan<Message> audit;
    JoinHandle<void> auditor = spawn([&] {
      for (Message& message : audit) {
        trace_id.set(message.trace_id);
        log("audit");
      }
    });
    http::Client client;
    http::Server back, front;
    back.use(with_trace_id);
    back.handle("GET /", [](http::Request&, http::Response& res) {
      log("the service behind");
      res.send(*trace_id);
    });
    front.use(with_trace_id);
    front.handle("GET /", [&](http::Request&, http::Response& res) {
      log("handler");
      WaitGroup parts;
      parts.go(trace_id.carry([] { log("goroutine"); }));
      parts.add(1);
      pool.submit(trace_id.carry([&] {
        log("worker");
        parts.done();
      }));
      audit.send({*trace_id, "asked"});
      parts.wait();
      const std::string behind = "http://" + back.local_address().to_string() + "/";
      res.send(client.get(behind, {{"X-Trace-Id", *trace_id}}).body);
    });
    back.listen("127.0.0.1:0");
    front.listen("127.0.0.1:0");
    JoinHandle<void> serving = spawn([&] { back.serve(); }), too = spawn([&] { front.serve(); });

    std::atomic<int> right = 0;
    WaitGroup clients;
    for (int i = 0; i < 20; ++i) {
      clients.go([&, id = "trace-" + std::to_string(i)] {
        const std::string url = "http://" + front.local_address().to_string() + "/";
        if (client.get(url, {{"X-Trace-Id", id}}).body == id) ++right;
      });
    }
    clients.wait();
    audit.close();
    auditor.join();
    front.shutdown(std::chrono::seconds(10));
    back.shutdown(std::chrono::seconds(10));
    return right == 20 && lines == 20 * 5 ? 0 : 1;
  });
}
