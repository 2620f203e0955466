// http_echo.h: routes of a server that tests talk to.
#pragma once

#include <magpie/http.h>

#include <string>

namespace magpie::support {

inline void add_echo(http::Server& server) {
  server.handle("POST /echo",
                [](http::Request& req, http::Response& res) { res.send(req.body()); });
  server.handle("GET /", [](http::Request&, http::Response& res) { res.send("hello"); });
  server.handle(
      "POST /large",
      [](http::Request& req, http::Response& res) { res.send(std::to_string(req.body().size())); },
      http::RouteOptions{.max_body_bytes = 1000});
}

}  // namespace magpie::support
