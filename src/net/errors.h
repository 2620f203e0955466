// errors.h: one implementation, two doors: a function returns its error, and a wrapper throws it.
#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>

#include <magpie/context.h>

#include "io/limit.h"

namespace magpie::net {

inline std::error_code code_of(int error) { return {error, std::generic_category()}; }

// Not inlined, as all that looks at errno: a compiler may keep its address over a call into the
// runtime, after which the thread may be another.
[[gnu::noinline]] inline std::error_code code_of_errno() { return code_of(errno); }

// "magpie: connect to 127.0.0.1:1: Connection refused".
[[noreturn]] inline void fail(std::error_code error, const std::string& what) {
  throw std::system_error(error, "magpie: " + what);
}

// f(), where a text that std::invalid_argument would be thrown for is an error too.
template <class F>
auto without_throwing(std::error_code& error, F f) -> decltype(f()) {
  try {
    return f();
  } catch (const std::invalid_argument&) {
    error = std::make_error_code(std::errc::invalid_argument);
    return {};
  }
}

// A context as the limit of calls; null for none.
class ContextLimit final : public io::Limit {
 public:
  explicit ContextLimit(const Context* context) : context_(context) {}
  int error() const noexcept override { return context_->err().value(); }
  std::stop_token stop_token() const override { return context_->stop_token(); }
  bool lock(Mutex& mutex) const override {
    std::error_code ignored;  // error() says it
    return mutex.lock(*context_, ignored);
  }

  const io::Limit* get() const { return context_ == nullptr ? nullptr : this; }

 private:
  const Context* const context_;
};

}  // namespace magpie::net
