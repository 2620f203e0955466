// api.h: what the service answers.
#pragma once

#include <magpie/circuit_breaker.h>
#include <magpie/http.h>
#include <magpie/single_flight.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cache.h"
#include "config.h"
#include "database.h"
#include "metrics.h"

namespace notes {

class Api {
 public:
  Api(const Config& config, std::unique_ptr<Database> database);

  // Adds middlewares and routes. The Api has to outlive the server.
  void add_to(magpie::http::Server& server);

 private:
  using Request = magpie::http::Request;
  using Response = magpie::http::Response;

  void add_note(Request& req, Response& res);
  void get_note(Request& req, Response& res);
  void get_upstream(Request& req, Response& res);

  const Config& config_;
  std::unique_ptr<Database> database_;
  Cache cache_;
  Metrics metrics_;
  magpie::SingleFlight<std::int64_t, std::optional<std::string>> finding_;
  magpie::http::Client client_;
  magpie::CircuitBreaker upstream_;
};

}  // namespace notes
