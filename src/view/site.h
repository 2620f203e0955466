// site.h: what the debug pages answer.
#pragma once

#include <memory>
#include <string_view>

#include <magpie/debug_server.h>
#include <magpie/http/request.h>
#include <magpie/http/response.h>

#include "view/access.h"
#include "view/latency_probe.h"

namespace magpie::view {

// Many goroutines call answer() at once.
class Site {
 public:
  explicit Site(debug::ServeOptions options) : access_(std::move(options)) {}

  // Throws http::StatusError for what it does not answer, or may not.
  void answer(const http::Request& request, http::Response& response);

  const Access& access() const { return access_; }

 private:
  void send_page(http::Response& response);
  void send_stats(http::Response& response);
  void send_metrics(http::Response& response);
  void send_info(http::Response& response);

  const Access access_;
  LatencyProbe probe_;
};

}  // namespace magpie::view
