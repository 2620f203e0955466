// caught.h: what user code threw, in a handler that catches everything.
#pragma once

#include <magpie/detail/cxx20.h>

#include <exception>

namespace magpie::detail {

// std::current_exception(). pthread_exit() and pthread_cancel() unwind the stack too, with what is no exception and cannot be
// kept: then the program ends with a message.
[[nodiscard]] std::exception_ptr caught() noexcept;

}  // namespace magpie::detail
