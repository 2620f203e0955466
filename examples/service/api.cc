#include "api.h"

#include <charconv>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

#include "log.h"

namespace notes {
namespace {

using magpie::Context;
using magpie::http::Handler;
using magpie::http::Request;
using magpie::http::Response;
using magpie::http::StatusError;
using nlohmann::json;

void send_json(Response& res, int status, const json& body) {
  res.status(status).header("Content-Type", "application/json");
  res.send(body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
}

std::int64_t id_of(const Request& req) {
  const std::string& text = req.param("id");
  std::int64_t id = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size())
    throw StatusError(400, "an id is a number");
  return id;
}

std::string new_request_id() {
  std::random_device random;
  char text[17];
  std::snprintf(text, sizeof text, "%08x%08x", random(), random());
  return text;
}

magpie::http::ClientOptions client_options(const Config& config) {
  magpie::http::ClientOptions options{.timeout = std::chrono::seconds(5)};
  if (!config.upstream_ca.empty())
    options.tls = magpie::net::TlsClientConfig({.ca_file = config.upstream_ca});
  return options;
}

// The id by which the log tells requests apart; a proxy in front may have chosen it.
Handler with_request_id(Handler next) {
  return [next](Request& req, Response& res) {
    const std::string& given = req.header("X-Request-Id");
    request_id.set(given.empty() ? new_request_id() : given.substr(0, 64));
    res.header("X-Request-Id", *request_id);
    next(req, res);
    request_id.set("");
  };
}

// What handlers throw becomes {"error": ...}.
Handler with_json_errors(Handler next) {
  return [next](Request& req, Response& res) {
    auto fail = [&](int status, const std::string& text) {
      if (!res.started()) send_json(res, status, {{"error", text}});
    };
    try {
      next(req, res);
    } catch (const StatusError& error) {
      fail(error.status(), error.what());
    } catch (const std::system_error& error) {
      if (!req.context().cancelled()) log_error("request failed", {{"error", error.what()}});
      fail(503, "the service is busy");
    } catch (const std::exception& error) {
      log_error("request failed", {{"error", error.what()}});
      fail(500, "internal error");
    }
  };
}

}  // namespace

Api::Api(const Config& config, std::unique_ptr<Database> database)
    : config_(config),
      database_(std::move(database)),
      cache_(config.redis_host, config.redis_port),
      client_(client_options(config)) {}

void Api::add_to(magpie::http::Server& server) {
  server.use(with_request_id);
  server.use([this](Handler next) {
    return [this, next](Request& req, Response& res) {
      const auto begun = std::chrono::steady_clock::now();
      next(req, res);
      const auto took = std::chrono::steady_clock::now() - begun;
      metrics_.count_request(req.route().empty() ? "none" : req.route(), res.status(), took);
      log_info("request", {{"method", req.method()},
                           {"path", req.path()},
                           {"status", res.status()},
                           {"bytes", res.body_bytes()},
                           {"microseconds", took / std::chrono::microseconds(1)}});
    };
  });
  server.use(magpie::http::limit_concurrency(config_.max_requests));
  server.use(magpie::http::timeout(config_.request_timeout));
  server.use(with_json_errors);

  server.handle("POST /notes", [this](Request& req, Response& res) { add_note(req, res); });
  server.handle("GET /notes/{id}", [this](Request& req, Response& res) { get_note(req, res); });
  server.handle("GET /upstream", [this](Request& req, Response& res) { get_upstream(req, res); });
  server.handle("GET /healthz", [](Request&, Response& res) {
    send_json(res, 200, {{"ok", true}});
  });
  server.handle("GET /metrics", [this](Request&, Response& res) {
    res.header("Content-Type", "text/plain; version=0.0.4");
    res.send(metrics_.text());
  });
}

void Api::add_note(Request& req, Response& res) {
  const json body = json::parse(req.body(), nullptr, false);
  if (!body.is_object() || !body.contains("text") || !body["text"].is_string())
    throw StatusError(400, "expected {\"text\": \"...\"}");
  const std::string text = body["text"];
  const std::int64_t id = database_->add(req.context(), text);
  cache_.store(req.context(), "note:" + std::to_string(id), text);
  send_json(res, 201, {{"id", id}, {"text", text}});
}

void Api::get_note(Request& req, Response& res) {
  const std::int64_t id = id_of(req);
  const Context& context = req.context();
  const std::string key = "note:" + std::to_string(id);
  std::optional<std::string> text = cache_.find(context, key);
  metrics_.count_cache(text.has_value());
  if (!text) {
    // A hundred requests for the same note at once ask the database once. So it is not asked with
    // the context of one of them, whose client may go away.
    text = finding_.call(context, id, [&] {
      Context all = Context::background().with_timeout(config_.request_timeout);
      std::optional<std::string> found = database_->find(all, id);
      if (found) cache_.store(all, key, *found);
      return found;
    });
  }
  if (!text) throw StatusError(404, "no such note");
  send_json(res, 200, {{"id", id}, {"text", *text}});
}

// What another service says. While that one is down, the breaker answers for it at once.
void Api::get_upstream(Request& req, Response& res) {
  if (config_.upstream.empty()) throw StatusError(404, "no upstream is set");
  try {
    magpie::http::Reply reply = upstream_.call([&] {
      magpie::http::Headers headers;
      headers.set("X-Request-Id", *request_id);
      return client_.request(
          {.url = config_.upstream, .headers = headers, .context = req.context()});
    });
    send_json(res, 200, {{"status", reply.status}, {"body", reply.body}});
  } catch (const magpie::CircuitOpen&) {
    throw StatusError(503, "the upstream is down");
  } catch (const std::system_error& error) {
    log_warning("upstream", {{"error", error.what()}});
    throw StatusError(502, "the upstream does not answer");
  }
}

}  // namespace notes
