// middleware.h: handlers, and functions that wrap every handler of a server.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string_view>

#include <magpie/detail/api.h>
#include <magpie/detail/deadline.h>
#include <magpie/detail/shared_function.h>
#include <magpie/http/request.h>
#include <magpie/http/response.h>

namespace magpie::http {

// Any function that takes (Request&, Response&), also a move-only one; copies share it. Many
// goroutines call it at once. It may block, and throw: see StatusError and ServerOptions::on_error.
using Handler = detail::SharedFunction<void(Request&, Response&)>;

// Any function that takes a handler and returns one which does something before and after `next`,
// or instead of it. The server calls it once.
using Middleware = detail::SharedFunction<Handler(Handler next)>;

// Lets at most `requests` requests run at a time; others are answered 503 at once. It reads bodies
// of up to ServerOptions::max_body_bytes first, so that a client which sends slowly holds no place.
MAGPIE_API Middleware limit_concurrency(std::size_t requests);

// What one remote address may do; for IPv6, one /64. 0: no limit.
struct AddressLimits {
  std::size_t connections = 0;     // open, and have sent a request
  double requests_per_second = 0;  // on average
  std::size_t burst = 0;           // at once, after a pause; 0: what a second allows
};
// Answers requests beyond the limits 429 with Retry-After, and closes a connection beyond them
// after that. Behind a proxy all clients have the proxy's address: limit there. Throws
// std::invalid_argument for a rate that is not a number of at least 0.
MAGPIE_API Middleware limit_per_address(const AddressLimits& limits);

// Limits the time of a request. If it has not begun to answer by then, it is answered 503 and its
// connection ends; if it has, it is cut off. Its context is cancelled. The handler itself goes on
// until it looks: reading and writing fail with errc::timed_out from then on.
MAGPIE_API Middleware timeout_ns(std::int64_t nanoseconds);
template <class Rep, class Period>
Middleware timeout(std::chrono::duration<Rep, Period> duration) {
  return timeout_ns(detail::whole_ns(duration));
}

// Writes a line per request in the common log format, and the microseconds it took. Writes whole
// lines, one at a time. The stream has to outlive the server.
MAGPIE_API Middleware access_log(std::ostream& out);
// Passes each line, without its end, to `write_line`.
MAGPIE_API Middleware access_log(std::function<void(std::string_view)> write_line);

}  // namespace magpie::http
