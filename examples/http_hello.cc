// http_hello.cc: a web server, asked by a client. With an address ("127.0.0.1:8080") it serves
// until it is killed.
#include <magpie/http.h>
#include <magpie/magpie.h>

#include <cstdio>
#include <iostream>

using namespace magpie;
using namespace std::chrono_literals;

int main(int argc, char** argv) {
  return run([&] {
    http::Server server;
    server.use(http::access_log(std::cout));
    server.handle("GET /hello/{name}", [](http::Request& req, http::Response& res) {
      res.header("Content-Type", "text/plain; charset=utf-8");
      res.send("hello " + req.param("name") + "\n");
    });
    // A response in parts: the client sees each line as it is flushed.
    server.handle("GET /count/{n}", [](http::Request& req, http::Response& res) {
      for (int i = 1; i <= std::stoi(req.param("n")); ++i) {
        res.write(std::to_string(i) + "\n");
        res.flush();
      }
    });
    server.listen(argc > 1 ? argv[1] : "127.0.0.1:0");
    if (argc > 1) {
      server.serve();
      return 0;
    }

    JoinHandle<void> serving = spawn([&] { server.serve(); });
    const std::string root = "http://" + server.local_address().to_string();
    http::Client client;
    http::Reply hello = client.get(root + "/hello/Ada");
    http::Reply count = client.get(root + "/count/3");
    http::Reply none = client.get(root + "/nothing/here");
    server.shutdown(1s);
    serving.join();

    bool right = hello.body == "hello Ada\n" && count.body == "1\n2\n3\n" && none.status == 404;
    std::puts(right ? "all as expected" : "something is wrong");
    return right ? 0 : 1;
  });
}
