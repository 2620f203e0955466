// middleware.h: what is done around every handler of a server.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string_view>

#include <magpie/detail/deadline.h>
#include <magpie/detail/shared_function.h>
#include <magpie/http/request.h>
#include <magpie/http/response.h>

namespace magpie::http {

// Any function that takes (Request&, Response&), also a move-only one; copies share it. Many goroutines call it at once. It
// may block, and throw: see StatusError and ServerOptions::on_error.
using Handler = detail::SharedFunction<void(Request&, Response&)>;

// Any function that makes a handler which does something before and after `next`, or instead of it. The server calls it
// once.
using Middleware = detail::SharedFunction<Handler(Handler next)>;

// At most so many requests at a time; others are answered 503 at once. Bodies up to ServerOptions::max_body_bytes are read
// before, so that a client that sends slowly holds no place.
Middleware limit_concurrency(std::size_t requests);

// What one remote address may do; of IPv6 one /64. 0: no limit.
struct AddressLimits {
  std::size_t connections = 0;     // that have sent a request and are open
  double requests_per_second = 0;  // on average
  std::size_t burst = 0;           // so many at once, after a pause; 0: what is allowed in a second
};
// Beyond that, requests are answered 429 with Retry-After; a connection too many is closed after that. Behind a proxy all
// clients have the proxy's address: limit there. Throws std::invalid_argument for a rate that is none.
Middleware limit_per_address(const AddressLimits& limits);

// A request that has not begun to answer after this time is answered 503, and its connection ended; one that has is cut
// off. Its context is cancelled. The handler itself goes on until it looks: reading and writing fail with
// errc::timed_out from then on.
Middleware timeout_ns(std::int64_t nanoseconds);
template <class Rep, class Period>
Middleware timeout(std::chrono::duration<Rep, Period> duration) {
  return timeout_ns(detail::whole_ns(duration));
}

// A line per request in the common log format, and the microseconds it took. Lines are written whole, one at a time. The
// stream has to outlive the server.
Middleware access_log(std::ostream& out);
// The same, without the end of line, for somebody else to write.
Middleware access_log(std::function<void(std::string_view)> write_line);

}  // namespace magpie::http
