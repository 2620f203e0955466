// site.h: what the debug pages answer.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include <magpie/blocking.h>
#include <magpie/debug_server.h>
#include <magpie/http/request.h>
#include <magpie/http/response.h>
#include <magpie/mutex.h>

#include "view/access.h"
#include "view/dump_json.h"
#include "view/latency_probe.h"
#include "view/trace_api.h"

namespace magpie::view {

// Many goroutines call answer() at once.
class Site {
 public:
  // Shows the running program, and what was recorded of it.
  explicit Site(debug::ServeOptions options) : access_(std::move(options)), is_live_(true) {}
  // Shows a trace, and nothing of the process that serves it.
  Site(debug::ServeOptions options, std::shared_ptr<const TraceApi> trace)
      : access_(std::move(options)), is_live_(false), trace_(std::move(trace)) {}

  // Throws http::StatusError for what it does not answer, or may not.
  void answer(const http::Request& request, http::Response& response);

  const Access& access() const { return access_; }

 private:
  std::shared_ptr<const TraceApi> trace();
  bool answer_live(std::string_view topic, const http::Request& request, http::Response& response);
  void record(const http::Request& request, http::Response& response);
  void send_waits(http::Response& response);
  void send_page(http::Response& response);
  void send_info(http::Response& response);
  void send_of_trace(std::string_view topic, const http::Request& request,
                     http::Response& response);

  // Calls what dumps the goroutines, which blocks. Requests wait for each other: else each would
  // need a thread of its own.
  template <class Function>
  auto dump_alone(Function function) {
    std::lock_guard lock(dumping_);
    return blocking(function);
  }

  // fixed after construction
  const Access access_;
  const bool is_live_;

  LatencyProbe probe_;
  Mutex dumping_;
  Mutex mutex_;
  // guarded by mutex_
  std::shared_ptr<const TraceApi> trace_;  // null: nothing was recorded yet
  GrowthWatch growth_;
};

}  // namespace magpie::view
