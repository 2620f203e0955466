// middleware.h: what is done around every handler of a server.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string_view>

#include <magpie/detail/deadline.h>
#include <magpie/http/request.h>
#include <magpie/http/response.h>

namespace magpie::http {

// May block, and throw: see StatusError and ServerOptions::on_error. Called by many goroutines at once.
using Handler = std::function<void(Request&, Response&)>;

// Makes a handler that does something before and after `next`, or instead of it. Called once per Server::use().
using Middleware = std::function<Handler(Handler next)>;

// At most so many requests at a time; others are answered 503 at once.
Middleware limit_concurrency(std::size_t requests);

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
