// request.h: what a client asks for. Lives as long as its handler runs, and belongs to the handler's goroutine.
//
// The references that the functions return are good until the handler returns. What is not there is an empty string.
#pragma once

#include <magpie/detail/cxx20.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <magpie/context.h>
#include <magpie/http/headers.h>

namespace magpie::net {
class TlsConn;  // magpie/net/tls.h
}

namespace magpie::http {

class Exchange;  // src/http/exchange.h

class Request {
 public:
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  const std::string& method() const;
  // Without the query; %-escapes are decoded. Has no "." or ".." and no "//", also none that was escaped: see param().
  const std::string& path() const;
  // Path and query as they came; begins with / in every handler of a route.
  const std::string& target() const;
  // "example.org:8080": whom the client asks for, by the target ("http://example.org:8080/") or the header Host. A name or an
  // address, and maybe a port; nothing else is let through. Whether it is a name of yours is for you to check.
  const std::string& host() const;
  // What stood in the place of {name} in the route's pattern, decoded. May be used as a path below some directory: it is
  // not absolute and does not lead out. It may have a / in it, where the client has escaped it as %2F.
  const std::string& param(std::string_view name) const;
  // The first value of that name in the query, decoded.
  const std::string& query(std::string_view name) const;
  bool has_query(std::string_view name) const;
  // The first value of that name.
  const std::string& header(std::string_view name) const;
  bool has_header(std::string_view name) const;
  // All of them, copied.
  Headers headers() const;
  // The pattern that matched; empty: none did.
  const std::string& route() const;
  // 10 or 11.
  int version() const;
  // "127.0.0.1:1234"; empty if the connection is no socket.
  std::string remote_address() const;
  // The TLS connection that it came over, to ask for the client's certificate, or the name that it asked for; not to be read
  // or written. Null: there is none.
  const net::TlsConn* tls() const noexcept;

  // The whole body; reads it when called first. Blocks. Throws StatusError (413: it is larger than the limit; 408; 400),
  // std::system_error if the connection fails, std::logic_error after read().
  const std::string& body();
  // The next bytes of the body; 0 at its end. Blocks until there is one. Throws as body().
  std::size_t read(std::span<std::byte> into);
  std::size_t read(std::span<char> into) { return read(std::as_writable_bytes(into)); }
  // As announced. None: the body comes in chunks.
  std::optional<std::uint64_t> content_length() const;

  // Cancelled when the handler has ended, the request's time is up (timeout()), the server's grace at shutdown is over, or the
  // client has gone, or says that it sends no more: that is noticed within half a second. Throws std::bad_alloc.
  const Context& context() const;

 private:
  friend class Exchange;
  explicit Request(Exchange& exchange) : exchange_(exchange) {}
  Exchange& exchange_;
};

}  // namespace magpie::http
