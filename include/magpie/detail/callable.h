// callable.h: what a function has to be to be kept and called. Not part of the API.
#pragma once

#include <magpie/detail/cxx20.h>

#include <functional>
#include <type_traits>

#include <magpie/detail/api.h>

namespace magpie::detail {

// A copy of it can be called, without arguments and any number of times.
template <class F>
concept Callable = std::is_invocable_v < std::decay_t<F>
& > ;

template <class F>
inline constexpr bool kMayBeEmpty = std::is_pointer_v<F> || std::is_member_pointer_v<F>;
template <class Signature>
inline constexpr bool kMayBeEmpty<std::function<Signature>> = true;
#ifdef __cpp_lib_move_only_function
template <class... Signature>
inline constexpr bool kMayBeEmpty<std::move_only_function<Signature...>> = true;
#endif

[[noreturn]] MAGPIE_API void throw_empty_function();

// For a function that is called later, where nobody could catch what an empty one throws. Throws
// std::invalid_argument if it is empty, or a null pointer.
template <class F>
void check_not_empty(const F& f) {
  if constexpr (kMayBeEmpty<F>) {
    if (f == nullptr) [[unlikely]]
      throw_empty_function();
  }
}

}  // namespace magpie::detail
