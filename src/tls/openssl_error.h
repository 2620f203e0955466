// openssl_error.h: what OpenSSL says went wrong. Its list of errors belongs to the thread: it is
// cleared before each call and read right after it, with nothing in between that could move the
// goroutine.
#pragma once

#include <string>

namespace magpie::net {

// Takes everything off the calling thread's list. Throws std::system_error of tls_errors():
// "magpie: what: reason".
[[noreturn]] void throw_openssl_error(const std::string& what);

// The same, taken off and thrown later.
struct OpensslError {
  int code = 0;  // 0: none

  static OpensslError take() noexcept;
  // Throws std::system_error: "what: reason".
  [[noreturn]] void raise(const std::string& what) const;
};

}  // namespace magpie::net
