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

OpensslError OpensslError::take() {
  OpensslError error;
  while (unsigned long next = ERR_get_error()) {
    if (error.code == 0) error.code = static_cast<int>(next & 0x7fffffff);
    char text[256];
    ERR_error_string_n(next, text, sizeof text);
    if (!error.text.empty()) error.text += "; ";
    error.text += text;
  }
  return error;
}

void OpensslError::raise(const std::string& what) const {
  throw std::system_error(code, tls_errors(),
                          "magpie: " + what + (text.empty() ? "" : " (" + text + ")"));
}

void throw_openssl_error(const std::string& what) { OpensslError::take().raise(what); }

}  // namespace magpie::net
