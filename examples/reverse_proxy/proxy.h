// proxy.h: a handler that passes requests on to servers behind it, in turn, as they come: bodies
// stream through in both directions. A server that does not answer is passed over for a while. Made
// to be copied: what clients say does not decide whom the proxy asks, nor what the servers behind
// believe of them.
#pragma once

#include <magpie/http.h>
#include <magpie/magpie.h>

#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "fields.h"

namespace proxy {

using namespace magpie;
using namespace std::chrono_literals;

// The body of the client's request, read when the server behind wants more of it. What goes wrong
// with the client is kept apart from what goes wrong with the server: otherwise a bad client would
// make a good server look broken.
struct PassedOn : http::BodySource {
  explicit PassedOn(http::Request& its) : request(its) {}
  std::size_t read(std::span<std::byte> into) override {
    const auto began = std::chrono::steady_clock::now();
    try {
      std::size_t n = request.read(into);
      waited += std::chrono::steady_clock::now() - began;
      return n;
    } catch (...) {
      fault_of_client = std::current_exception();
      throw;
    }
  }
  std::optional<std::uint64_t> size() const override { return request.content_length(); }
  http::Request& request;
  std::exception_ptr fault_of_client;
  std::chrono::steady_clock::duration waited{0};  // for the client
};

class Proxy {
 public:
  explicit Proxy(std::vector<std::string> roots, std::chrono::milliseconds timeout = 30s)
      : timeout_(timeout) {
    for (std::string& root : roots) behind_.push_back(std::make_unique<Behind>(std::move(root)));
  }

  void operator()(http::Request& req, http::Response& res) {
    PassedOn body(req);
    std::optional<http::ReplyStream> reply;
    for (std::size_t tries = 0; tries < behind_.size() && !reply; ++tries) {
      Behind& one = *behind_[next_++ % behind_.size()];
      try {
        one.breaker.call([&] {
          try {
            reply = ask(one, req, body);
          } catch (const std::system_error& error) {
            // Most of the time was the client's.
            if (error.code() == std::errc::timed_out && body.waited > timeout_ / 2)
              body.fault_of_client = std::make_exception_ptr(http::StatusError(408));
            if (!body.fault_of_client) throw;
          } catch (...) {
            if (!body.fault_of_client) throw;
          }
        });
      } catch (const CircuitOpen&) {
        continue;
      } catch (const http::ProtocolError&) {
      } catch (const std::system_error&) {
      }
      if (body.fault_of_client) std::rethrow_exception(body.fault_of_client);
      // It may have done what it was asked to, and some of the body is gone.
      if (!reply && (req.content_length() != 0 || !may_be_repeated(req.method()))) break;
    }
    if (!reply) throw http::StatusError(502);
    pass_back(*reply, res);
  }

 private:
  struct Behind {
    explicit Behind(std::string its) : root(std::move(its)) {}
    std::string root;
    CircuitBreaker breaker{{.failures = 2, .open_for = 5s, .trials = 1}};
  };

  static bool may_be_repeated(const std::string& method) {
    return method == "GET" || method == "HEAD" || method == "OPTIONS";
  }

  http::ReplyStream ask(Behind& one, http::Request& req, PassedOn& body) {
    const http::Headers from_client = req.headers();
    http::Headers headers;
    for (const auto& [name, value] : from_client) {
      if (!is_for_one_hop(name, from_client) && !tells_of_client(name)) headers.add(name, value);
    }
    headers.set("X-Forwarded-For", host_of(req.remote_address()));
    headers.set("X-Forwarded-Host", req.host());
    // A target begins with /, so the root decides who is asked, whatever the client says.
    const std::string url = one.root + req.target();
    if (req.content_length() == 0) return client_.open(req.method(), url, headers);
    return client_.open(req.method(), url, headers, body);
  }

  void pass_back(http::ReplyStream& reply, http::Response& res) {
    res.status(reply.status());
    for (const auto& [name, value] : reply.headers()) {
      if (!is_for_one_hop(name, reply.headers()) && name != "Date") res.add_header(name, value);
    }
    std::array<char, 16 * 1024> some;
    while (std::size_t n = reply.read(std::span<char>(some))) {
      res.write(std::string_view(some.data(), n));
      res.flush();
    }
  }

  const std::chrono::milliseconds timeout_;
  http::Client client_{{.timeout = timeout_, .max_redirects = 0}};
  std::vector<std::unique_ptr<Behind>> behind_;
  std::atomic<std::size_t> next_{0};
};

}  // namespace proxy
