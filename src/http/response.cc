#include <magpie/http/response.h>

#include "http/exchange.h"

namespace magpie::http {

namespace {

template <class F>
void tell_failure(std::error_code& error, F f) {
  error.clear();
  try {
    f();
  } catch (const std::system_error& thrown) {
    error = thrown.code();
  }
}

}  // namespace

Response& Response::status(int code) {
  exchange_.out.set_status(code);
  return *this;
}
int Response::status() const { return exchange_.out.status(); }
Response& Response::header(std::string_view name, std::string_view value) {
  exchange_.out.set_field(name, value);
  return *this;
}
Response& Response::add_header(std::string_view name, std::string_view value) {
  exchange_.out.add_field(name, value);
  return *this;
}
void Response::send(std::string_view body) { exchange_.out.send(body); }
void Response::write(std::string_view bytes) { exchange_.out.write(bytes); }
void Response::flush() { exchange_.out.flush(); }
void Response::send(std::string_view body, std::error_code& error) {
  tell_failure(error, [&] { send(body); });
}
void Response::write(std::string_view bytes, std::error_code& error) {
  tell_failure(error, [&] { write(bytes); });
}
void Response::flush(std::error_code& error) {
  tell_failure(error, [&] { flush(); });
}
bool Response::started() const { return exchange_.out.started(); }
std::uint64_t Response::body_bytes() const { return exchange_.out.body_bytes(); }

}  // namespace magpie::http
