// exchange.h: what a connection needs while it is not at rest: buffers, a request and its response.
#pragma once

#include <magpie/http/request.h>
#include <magpie/http/response.h>

#include "http/request_state.h"
#include "http/response_state.h"

namespace magpie::http {

class Connection;

class Exchange {
 public:
  explicit Exchange(Connection& connection)
      : connection_(&connection), in(connection), out(connection) {}
  // Exchanges are used by one connection after the other.
  void attach(Connection& connection) {
    connection_ = &connection;
    in.attach(connection);
    out.attach(connection);
  }
  Connection& connection() { return *connection_; }

  static Exchange& of(const Request& request) { return request.exchange_; }
  static Exchange& of(const Response& response) { return response.exchange_; }

 private:
  Connection* connection_;

 public:
  RequestState in;
  ResponseState out;
  Request request{*this};
  Response response{*this};
};

}  // namespace magpie::http
