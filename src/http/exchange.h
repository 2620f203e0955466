// exchange.h: what a connection needs while it is not dormant: buffers, a request and its response.
//
// Thousands of connections may go dormant together. So an exchange, with its input buffer, is whole
// pages, taken from the system and given back to it. In the heap it would stay, between the small
// things that connections keep.
#pragma once

#include <cstddef>

#include <magpie/http/request.h>
#include <magpie/http/response.h>

#include "http/request_state.h"
#include "http/response_state.h"

namespace magpie::http {

class Connection;

class Exchange {
 public:
  explicit Exchange(Connection& connection);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  static void* operator new(std::size_t size);
  static void operator delete(void* memory, std::size_t size) noexcept;

  // Exchanges are used by one connection after the other.
  void attach(Connection& connection) {
    connection_ = &connection;
    in.attach(connection);
    out.attach(connection);
  }
  // Between two of them: buffers that have grown are given back.
  void detach();

  Connection& connection() { return *connection_; }
  static Exchange& of(const Request& request) { return request.exchange_; }

 private:
  Connection* connection_;

 public:
  RequestState in;
  ResponseState out;
  Request request{*this};
  Response response{*this};

 private:
  char input_[6 * 1024];
};

static_assert(sizeof(Exchange) <= 8192, "two pages");

}  // namespace magpie::http
