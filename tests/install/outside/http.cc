// Knows Magpie only by its public headers: a server, asked by a client.

#include <magpie/http.h>
#include <magpie/magpie.h>

#include <cstdio>

int main() {
  using namespace magpie;
  std::string body = run([] {
    http::Server server;
    server.handle("GET /{name}", [](http::Request& req, http::Response& res) {
      res.send("hello " + req.param("name"));
    });
    server.listen("127.0.0.1:0");
    auto serving = spawn([&] { server.serve(); });
    http::Client client;
    std::string heard =
        client.get("http://" + server.local_address().to_string() + "/outside").body;
    server.shutdown(std::chrono::seconds(1));
    return heard;
  });
  std::puts(body.c_str());
  return body == "hello outside" ? 0 : 1;
}
