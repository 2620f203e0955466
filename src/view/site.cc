#include "view/site.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

#include <magpie/blocking.h>
#include <magpie/dump.h>
#include <magpie/http/error.h>
#include <magpie/runtime.h>
#include <magpie/stats.h>

#include "view/dump_json.h"
#include "view/json.h"
#include "view/metrics.h"
#include "view/page.h"
#include "view/recording.h"
#include "view/stats_json.h"

namespace magpie::view {
namespace {

constexpr std::string_view kOfTrace = "view/";
constexpr std::size_t kMostUnfolded = 20'000;

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

// 0: was not given, or is no number.
std::int64_t number(const http::Request& request, std::string_view name) {
  const std::string& text = request.query(name);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 ? value : 0;
}

// How long to record: what the request says.
std::chrono::seconds seconds_of(const http::Request& request, std::int64_t otherwise) {
  if (request.query("seconds").empty()) return std::chrono::seconds(otherwise);
  const std::int64_t given = number(request, "seconds");
  if (given < 1 || given > 60)
    throw http::StatusError(400, "seconds has to be a whole number from 1 to 60.\n");
  return std::chrono::seconds(given);
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
  if (topic == "info") return send_info(response);
  if (is_live_ && topic == "view/record") return record(request, response);
  if (topic.starts_with(kOfTrace))
    return send_of_trace(topic.substr(kOfTrace.size()), request, response);
  if (!is_live_ || !answer_live(topic, request, response)) throw http::StatusError(404);
}

// False: there is no such topic.
bool Site::answer_live(std::string_view topic, const http::Request& request,
                       http::Response& response) {
  if (topic == "stats") {
    send_json(response, stats_json(stats(), probe_.read(), steady_ns()));
  } else if (topic == "metrics") {
    response.header("Content-Type", kMetricsType).send(metrics(stats(), probe_.read()));
  } else if (topic == "goroutines" && request.query("format") == "json") {
    const GoroutineDump dump = dump_alone([] { return dump_goroutines(); });
    send_json(response, goroutines_json(dump, request.query("text")));
  } else if (topic == "goroutines") {
    std::ostringstream text;
    dump_alone([&text] { dump(text); });
    response.header("Content-Type", "text/plain; charset=utf-8").send(text.str());
  } else if (topic == "trace") {
    const Recording recording(seconds_of(request, 5), request.context());
    response.header("Content-Type", "application/octet-stream");
    response.header("Content-Disposition", "attachment; filename=\"magpie.trace\"");
    response.send(recording.bytes());
  } else if (topic == "waits") {
    send_waits(response);
  } else {
    return false;
  }
  return true;
}

void Site::record(const http::Request& request, http::Response& response) {
  auto recording = std::make_unique<Recording>(seconds_of(request, 1), request.context());
  auto recorded = blocking([&] { return open_recording(std::move(recording)); });
  {
    std::lock_guard lock(mutex_);
    trace_.swap(recorded);
  }
  send_info(response);
}

void Site::send_waits(http::Response& response) {
  // Folded, goroutines with equal stacks that wait for different things come as one.
  const Fold fold = num_goroutines() <= kMostUnfolded ? Fold::no : Fold::yes;
  const GoroutineDump dump = dump_alone([fold] { return dump_goroutines(fold); });
  std::string json;
  {
    std::lock_guard lock(mutex_);
    growth_.look(dump);
    json = live_waits_json(dump, growth_);
  }
  send_json(response, json);
}

void Site::send_page(http::Response& response) {
  const std::string nonce = make_nonce();
  response.header("Content-Type", "text/html; charset=utf-8");
  response.header("Content-Security-Policy", content_policy(nonce));
  response.send(page_with(nonce));
}

std::shared_ptr<const TraceApi> Site::trace() {
  std::lock_guard lock(mutex_);
  return trace_;
}

void Site::send_info(http::Response& response) {
  const std::shared_ptr<const TraceApi> shown = trace();
  JsonWriter json;
  json.begin_object();
  json.member("live", is_live_).member("trace", shown != nullptr);
  json.member("can_record", is_live_);
  json.member("program", is_live_ ? program_invocation_short_name : shown->program());
  json.member("pid", is_live_ ? getpid() : shown->pid());
  json.end_object();
  send_json(response, json.take());
}

void Site::send_of_trace(std::string_view topic, const http::Request& request,
                         http::Response& response) {
  const std::shared_ptr<const TraceApi> shown = trace();
  if (shown == nullptr) throw http::StatusError(404, "Nothing was recorded yet.\n");
  const TraceQuestion question{.text = request.query("text"),
                               .sort = request.query("sort"),
                               .level = number(request, "level"),
                               .index = number(request, "index"),
                               .offset = number(request, "offset"),
                               .limit = number(request, "limit"),
                               .id = static_cast<std::uint64_t>(number(request, "id"))};
  const std::optional<std::string> json = blocking([&] { return shown->answer(topic, question); });
  if (!json) throw http::StatusError(404);
  send_json(response, *json);
}

}  // namespace magpie::view
