// request.h: what a client asks for. Belongs to the goroutine of its handler, and lives as long as
// the handler runs.
//
// The references that the functions return are valid until the handler returns. What is not there
// is an empty string.
#pragma once

#include <magpie/detail/cxx20.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include <magpie/context.h>
#include <magpie/detail/api.h>
#include <magpie/http/headers.h>

namespace magpie::net {
class TlsConn;  // magpie/net/tls.h
}

namespace magpie::http {

class Exchange;  // src/http/exchange.h

// One request.
class MAGPIE_API Request {
 public:
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  const std::string& method() const;
  // The path without the query, with %-escapes decoded. It has no "." or ".." and no "//", escaped
  // or not: see param().
  const std::string& path() const;
  // Path and query as they came. Begins with / in every handler of a route.
  const std::string& target() const;
  // The host that the client asks for, such as "example.org:8080": from the target
  // ("http://example.org:8080/") or the header Host. It is a name or an address, perhaps with a
  // port; the server refuses anything else. Check yourself whether it is a name of yours.
  const std::string& host() const;
  // The text in the place of {name} in the route's pattern, decoded. Safe as a path below a
  // directory: it is not absolute and does not lead out. It may contain a / that the client has
  // escaped as %2F.
  const std::string& param(std::string_view name) const;
  // The first value of that name in the query, decoded.
  const std::string& query(std::string_view name) const;
  bool has_query(std::string_view name) const;
  // The first value of that name.
  const std::string& header(std::string_view name) const;
  bool has_header(std::string_view name) const;
  // A copy of all fields.
  Headers headers() const;
  // The pattern that matched. Empty: none did.
  const std::string& route() const;
  // 10 or 11.
  int version() const;
  // "127.0.0.1:1234". Empty: the connection is no socket.
  std::string remote_address() const;
  // The TLS connection of the request, to ask for the client's certificate or the name that it
  // asked for. Do not read or write it. Null: there is none.
  const net::TlsConn* tls() const noexcept;

  // The whole body. The first call reads it, and blocks. Throws StatusError (413: larger than the
  // limit; 408; 400), std::system_error if the connection fails, std::logic_error after read(). A
  // body that has failed fails again: it is never taken for an empty one.
  const std::string& body();
  // Blocks until there is at least one byte of the body. 0: its end. Throws as body().
  std::size_t read(std::span<std::byte> into);
  std::size_t read(std::span<char> into) { return read(std::as_writable_bytes(into)); }
  // Without exceptions for what the client does: errc::message_size for 413 and 431,
  // errc::timed_out for 408, errc::protocol_error for 400, errc::not_enough_memory for 503. The
  // body is empty after an error, and read() returns 0. The connection ends after the answer.
  const std::string& body(std::error_code& error);
  std::size_t read(std::span<std::byte> into, std::error_code& error);
  std::size_t read(std::span<char> into, std::error_code& error) {
    return read(std::as_writable_bytes(into), error);
  }
  // The announced length. Nullopt: the body comes in chunks.
  std::optional<std::uint64_t> content_length() const;

  // Is cancelled when the handler has ended, when the time of the request is up (timeout()), when
  // the grace of a shutdown is over, and when the client has gone or has closed its side, within
  // half a second of that. Throws std::bad_alloc.
  const Context& context() const;

 private:
  friend class Exchange;
  explicit Request(Exchange& exchange) : exchange_(exchange) {}
  Exchange& exchange_;
};

}  // namespace magpie::http
