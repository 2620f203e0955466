#include "tls/openssl_error.h"

#include <openssl/err.h>

#include <system_error>

#include <magpie/net/tls.h>

namespace magpie::net {
namespace {

class TlsErrors : public std::error_category {
 public:
  const char* name() const noexcept override { return "tls"; }
  std::string message(int code) const override {
    const char* reason = ERR_reason_error_string(static_cast<unsigned long>(code));
    return reason != nullptr ? reason : "TLS error " + std::to_string(code);
  }
};

}  // namespace

const std::error_category& tls_errors() {
  static const TlsErrors category;
  return category;
}

// The first in the list is the cause; the others say which functions it went through.
OpensslError OpensslError::take() noexcept {
  OpensslError error;
  while (unsigned long next = ERR_get_error()) {
    if (error.code == 0) error.code = static_cast<int>(next & 0x7fffffff);
  }
  return error;
}

void OpensslError::raise(const std::string& what) const {
  if (code == 0) throw std::system_error(std::make_error_code(std::errc::protocol_error), what);
  throw std::system_error(code, tls_errors(), what);
}

void throw_openssl_error(const std::string& what) { OpensslError::take().raise("magpie: " + what); }

}  // namespace magpie::net
