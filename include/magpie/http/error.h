// error.h: what goes wrong in HTTP. Failures of the connection itself are std::system_error, as in net.
#pragma once

#include <magpie/detail/cxx20.h>

#include <stdexcept>
#include <string>

namespace magpie::http {

// Thrown by a handler: the server answers with this status and text, if nothing has been sent yet. Request::body() and
// read() throw it for a body that is too large (413), too slow (408) or malformed (400).
class StatusError : public std::runtime_error {
 public:
  explicit StatusError(int status, const std::string& text = {});
  int status() const noexcept { return status_; }

 private:
  int status_;
};

// The server that a client talks to does not speak HTTP/1.1, or says more than the client's limits allow.
class ProtocolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What a status is called: "Not Found"; empty for one that has no name.
const char* reason_of(int status) noexcept;

}  // namespace magpie::http
