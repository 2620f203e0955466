// callable.h: what a function has to be to be kept and called. Not part of the API.
#pragma once

#include <magpie/detail/cxx20.h>

#include <type_traits>

namespace magpie::detail {

// A copy of it can be called, without arguments and any number of times.
template <class F>
concept Callable = std::is_invocable_v < std::decay_t<F>
& > ;

}  // namespace magpie::detail
