// caught.h: what user code threw, in a handler that catches everything. Not part of the API.
#pragma once

#include <magpie/detail/cxx20.h>

#include <exception>

#include <magpie/detail/api.h>

namespace magpie::detail {

// As std::current_exception(). pthread_exit() and pthread_cancel() unwind the stack too, by
// something that is no exception and cannot be kept; then this ends the program with a message.
[[nodiscard]] MAGPIE_API std::exception_ptr caught() noexcept;

}  // namespace magpie::detail
