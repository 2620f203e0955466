// server_routes.h: what the fuzzed server does, and what its handlers have seen.
#pragma once

#include <magpie/http.h>
#include <magpie/magpie.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/fail.h"

namespace magpie::fuzz {

using namespace std::chrono_literals;
using http::Request;
using http::Response;

inline constexpr std::size_t kMaxHeader = 2000;
inline constexpr std::uint64_t kMaxBody = 3000, kSmallBody = 16;

// A request, as a handler has seen it.
struct Seen {
  std::string method, target;
  int status = 0;
  bool may_be_cut = false;  // the answer, by what the handler does
  bool echoes = false;
  bool whole = false;  // the body was read to its end
  std::string body;

  // A body may be too large and malformed, and have too long a trailer: which of them is seen first
  // depends on how it arrives.
  bool is_refused() const { return status == 400 || status == 413 || status == 431; }
  bool operator==(const Seen& other) const {
    return method == other.method && target == other.target && whole == other.whole &&
           (status == other.status || (is_refused() && other.is_refused())) &&
           (!whole || body == other.body);
  }
};

// Of the connection that is served now: there is one at a time, and its client looks after its end.
inline std::vector<Seen> seen;

inline void note_body(const Request& req, std::string_view part) {
  Seen& now = seen.back();
  now.body += part;
  if (req.content_length() && now.body.size() > *req.content_length())
    fail("more of a body than was announced");
  if (now.body.size() > kMaxBody) fail("more of a body than the limit");
}

inline void note_end(const Request& req) {
  seen.back().whole = true;
  if (req.content_length() && seen.back().body.size() != *req.content_length())
    fail("less of a body than was announced");
}

inline std::size_t number(std::string_view text, std::size_t at_most) {
  std::size_t n = 0;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return std::min(n, at_most);
}

// What a handler gets never leads elsewhere.
inline void check_target(const Request& req) {
  const std::string path = req.path() + "/";
  if (!req.target().starts_with('/')) fail("a target that begins elsewhere: " + req.target());
  for (const char* part : {"/../", "/./"}) {
    if (path.find(part) != std::string::npos) fail("a path that leads elsewhere: " + path);
  }
  if (req.path().find("//") != std::string::npos || req.param("rest").starts_with('/'))
    fail("a path with nothing in it: " + path);
}

inline http::Handler record(http::Handler next) {
  return [next = std::move(next)](Request& req, Response& res) {
    Seen& now = seen.emplace_back();
    now.method = req.method();
    now.target = req.target();
    if (!req.route().empty()) check_target(req);
    int thrown = 500;
    try {
      next(req, res);
      now.status = res.status();
      return;
    } catch (const http::StatusError& error) {
      thrown = error.status();
      now.status = res.started() ? res.status() : thrown;
      now.may_be_cut |= res.started();
      // It was no request, or for nowhere: its answer is that to nobody.
      if (req.route().empty() && thrown != 404) seen.pop_back();
      throw;
    } catch (...) {
      now.status = res.started() ? res.status() : thrown;
      now.may_be_cut |= res.started();
      throw;
    }
  };
}

inline void add_routes(http::Server& server) {
  server.handle("GET /plain", [](Request&, Response& res) { res.send("plain\n"); });
  server.handle("GET /hello/{name}", [](Request& req, Response& res) {
    res.header("X-Query", std::to_string(req.query("q").size()));
    res.header("X-Fields", std::to_string(req.headers().size()));
    res.send("hello " + req.param("name"));
  });
  server.handle("/rest/{a}/{rest...}", [](Request& req, Response& res) {
    res.send(req.param("a") + req.param("rest") + req.header("x-test") + req.remote_address());
  });
  server.handle("/echo", [](Request& req, Response& res) {
    std::vector<char> memory(number(req.query("n"), 4000) + 1);  // exactly: to read more is seen
    const std::span<char> buffer(memory);
    seen.back().echoes = true;
    while (std::size_t n = req.read(buffer)) {
      note_body(req, {buffer.data(), n});
      res.write({buffer.data(), n});
      if (req.has_query("flush")) res.flush();
    }
    note_end(req);
  });
  server.handle("/whole", [](Request& req, Response& res) {
    note_body(req, req.body());
    note_end(req);
    seen.back().echoes = true;
    res.send(req.body());
  });
  server.handle(
      "/small",
      [](Request& req, Response& res) {
        if (req.body().size() > kSmallBody) fail("more of a body than the limit of its route");
        res.send("small\n");
      },
      http::RouteOptions{.max_body_bytes = kSmallBody});
  server.handle("/part", [](Request& req, Response& res) {
    char buffer[7];
    note_body(req, std::string_view(buffer, req.read(std::span<char>(buffer))));
    res.send("a part\n");
  });
  server.handle("/lazy", [](Request&, Response& res) { res.send("not read\n"); });
  server.handle("/chunks/{n}", [](Request& req, Response& res) {
    const std::size_t n = number(req.param("n"), 20);
    for (std::size_t i = 0; i < n; ++i) {
      res.write(std::string(i * 100, 'c'));
      if (i % 3 == 0) res.flush();
    }
  });
  server.handle("/large", [](Request&, Response& res) { res.send(std::string(40'000, 'l')); });
  server.handle("/status/{code}", [](Request& req, Response& res) {
    res.status(static_cast<int>(number(req.param("code"), 2000))).write("a body");
  });
  server.handle("/throw", [](Request&, Response&) { throw std::runtime_error("thrown"); });
  server.handle("/cut", [](Request&, Response& res) {
    res.write("cut");
    res.flush();
    throw std::runtime_error("thrown late");
  });
  server.handle("/less", [](Request&, Response& res) {
    seen.back().may_be_cut = true;
    res.header("Content-Length", "10").write("less");
  });
  server.handle("/wait", [](Request& req, Response& res) {
    Chan<void> done = req.context().done();
    select(on_recv(done, [](bool) {}), on_timeout(5ms, [] {}));
    res.send("waited\n");
  });
}

}  // namespace magpie::fuzz
