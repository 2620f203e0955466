#include "view/site.h"

#include <errno.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include <magpie/http/error.h>
#include <magpie/runtime.h>
#include <magpie/stats.h>

#include "view/json.h"
#include "view/metrics.h"
#include "view/page.h"
#include "view/stats_json.h"

namespace magpie::view {
namespace {

std::int64_t steady_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void send_json(http::Response& response, const std::string& json) {
  response.header("Content-Type", "application/json").send(json);
}

// What is asked for: in a route that ends in {rest...} that rest, else the last part of the path.
std::string_view topic_of(const http::Request& request) {
  if (request.route().ends_with("/{rest...}")) return request.param("rest");
  const std::string_view path = request.path();
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

void Site::answer(const http::Request& request, http::Response& response) {
  access_.check(request);
  if (request.method() != "GET" && request.method() != "HEAD") {
    response.header("Allow", "GET, HEAD");
    throw http::StatusError(405);
  }
  response.header("Cache-Control", "no-store");
  response.header("X-Content-Type-Options", "nosniff");
  response.header("Referrer-Policy", "no-referrer");
  response.header("Cross-Origin-Resource-Policy", "same-origin");
  const std::string_view topic = topic_of(request);
  if (topic.empty()) return send_page(response);
  if (topic == "stats") return send_stats(response);
  if (topic == "metrics") return send_metrics(response);
  if (topic == "info") return send_info(response);
  throw http::StatusError(404);
}

void Site::send_page(http::Response& response) {
  const std::string nonce = make_nonce();
  response.header("Content-Type", "text/html; charset=utf-8");
  response.header("Content-Security-Policy", content_policy(nonce));
  response.send(page_with(nonce));
}

void Site::send_stats(http::Response& response) {
  send_json(response, stats_json(stats(), probe_.read(), steady_ns()));
}

void Site::send_metrics(http::Response& response) {
  response.header("Content-Type", kMetricsType).send(metrics(stats(), probe_.read()));
}

void Site::send_info(http::Response& response) {
  JsonWriter json;
  json.begin_object();
  json.member("live", true);
  json.member("program", program_invocation_short_name);
  json.member("pid", getpid());
  json.member("procs", procs());
  json.end_object();
  send_json(response, json.take());
}

}  // namespace magpie::view
