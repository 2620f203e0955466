// error.h: errors of HTTP. A failure of the connection itself is a std::system_error, as in net.
#pragma once

#include <magpie/detail/cxx20.h>

#include <stdexcept>
#include <string>

#include <magpie/detail/api.h>

namespace magpie::http {

// A handler throws it: the server answers with this status and text if it has sent nothing yet.
// Request::body() and read() throw it for a body that is too large (413), too slow (408) or
// malformed (400).
class MAGPIE_API StatusError : public std::runtime_error {
 public:
  explicit StatusError(int status, const std::string& text = {});
  int status() const noexcept { return status_; }

 private:
  int status_;
};

// The server that a client talks to does not speak HTTP/1.1, or sends more than the client's limits
// allow.
class MAGPIE_API ProtocolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The name of a status: "Not Found". Empty: it has none.
MAGPIE_API const char* reason_of(int status) noexcept;

}  // namespace magpie::http
