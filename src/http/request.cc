#include <magpie/http/error.h>
#include <magpie/http/request.h>
#include <magpie/net/tls.h>

#include "http/connection.h"
#include "http/exchange.h"

namespace magpie::http {

namespace {
const std::string kNoText;
const std::string& text_or_none(const std::string* text) {
  return text != nullptr ? *text : kNoText;
}

std::errc errc_of(int status) {
  switch (status) {
    case 408:
      return std::errc::timed_out;
    case 413:
    case 431:
      return std::errc::message_size;
    case 503:
      return std::errc::not_enough_memory;
    default:
      return std::errc::protocol_error;
  }
}

// f(), or `failed` and the error.
template <class Result, class F>
Result tell_failure(std::error_code& error, Result failed, F f) {
  error.clear();
  try {
    return f();
  } catch (const StatusError& refused) {
    error = std::make_error_code(errc_of(refused.status()));
  } catch (const std::system_error& thrown) {
    error = thrown.code();
  }
  return failed;
}

}  // namespace

const std::string& Request::method() const { return exchange_.in.method(); }
const std::string& Request::path() const { return exchange_.in.path(); }
const std::string& Request::target() const { return exchange_.in.target(); }
const std::string& Request::host() const { return exchange_.in.host(); }
const std::string& Request::param(std::string_view name) const { return exchange_.in.param(name); }
const std::string& Request::query(std::string_view name) const {
  return text_or_none(exchange_.in.query(name));
}
bool Request::has_query(std::string_view name) const { return exchange_.in.query(name) != nullptr; }
const std::string& Request::header(std::string_view name) const {
  return text_or_none(exchange_.in.field(name));
}
bool Request::has_header(std::string_view name) const {
  return exchange_.in.field(name) != nullptr;
}

Headers Request::headers() const {
  Headers all;
  const char* message = exchange_.in.input.message();
  const auto& fields = exchange_.in.head().fields;
  for (std::size_t i = 0; i < fields.size(); ++i)
    all.add(fields[i].name.of(message), exchange_.in.field_value(i));
  return all;
}

const std::string& Request::route() const {
  const Route* route = exchange_.in.match().route;
  return route != nullptr ? route->pattern : kNoText;
}
int Request::version() const { return exchange_.in.head().version; }
std::string Request::remote_address() const { return exchange_.connection().remote_address(); }
const net::TlsConn* Request::tls() const noexcept {
  return dynamic_cast<const net::TlsConn*>(&exchange_.connection().stream());
}
const std::string& Request::body() { return exchange_.in.body(); }
std::size_t Request::read(std::span<std::byte> into) {
  return exchange_.in.read({reinterpret_cast<char*>(into.data()), into.size()});
}
const std::string& Request::body(std::error_code& error) {
  return *tell_failure(error, &kNoText, [&] { return &body(); });
}
std::size_t Request::read(std::span<std::byte> into, std::error_code& error) {
  return tell_failure(error, std::size_t{0}, [&] { return read(into); });
}
std::optional<std::uint64_t> Request::content_length() const {
  const Head& head = exchange_.in.head();
  if (head.chunked) return std::nullopt;
  return head.content_length.value_or(0);
}
const Context& Request::context() const { return exchange_.in.context(); }

}  // namespace magpie::http
