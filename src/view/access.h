// access.h: who may ask the debug pages.
//
//   token set      every request shows it, from any client, by any name
//   no token       the client is on this machine, and the host it asks for is a name of loopback.
//                  Without the second rule a page of the internet could have its own name resolved
//                  to 127.0.0.1, and read all answers as its own (DNS rebinding)
//   always         a browser says who made it ask: Origin and Sec-Fetch-Site. Another origin's page
//                  is refused, so that it cannot start recordings, nor load an answer as a script
#pragma once

#include <string>
#include <string_view>

#include <magpie/debug_server.h>
#include <magpie/http/request.h>
#include <magpie/net/address.h>

namespace magpie::view {

// 127.0.0.0/8, ::1, the first in the form of the second, or a Unix socket.
bool is_loopback(const net::Address& address);

// What the rules need to know of a request. Fields that are not there are empty.
struct Asked {
  std::string_view remote_address, host, origin, fetch_site, authorization, token;
};

class Access {
 public:
  explicit Access(debug::ServeOptions options);

  enum class Verdict { allowed, needs_token, foreign_client, foreign_host, foreign_origin };
  Verdict judge(const Asked& asked) const;
  // Throws http::StatusError unless the request is allowed.
  void check(const http::Request& request) const;

  const std::string& token() const { return options_.token; }

 private:
  bool shows_token(const Asked& asked) const;
  bool is_own_name(std::string_view host) const;

  const debug::ServeOptions options_;
};

}  // namespace magpie::view
