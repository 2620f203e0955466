// error_code.h: calls that throw, as calls that say by an error code what went wrong.
#pragma once

#include <stdexcept>
#include <system_error>
#include <utility>

#include <magpie/net/stream.h>

namespace magpie::net {

// f(), or a value-initialised result with the error. EndOfStream is StreamErrc::end_of_stream, and
// std::invalid_argument errc::invalid_argument.
template <class F>
auto with_error_code(std::error_code& error, F f) -> decltype(f()) {
  error.clear();
  try {
    return f();
  } catch (const std::system_error& thrown) {
    error = thrown.code();
  } catch (const EndOfStream&) {
    error = StreamErrc::end_of_stream;
  } catch (const std::invalid_argument&) {
    error = std::make_error_code(std::errc::invalid_argument);
  }
  return decltype(f())();
}

}  // namespace magpie::net
