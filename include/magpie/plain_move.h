// plain_move.h: which values a channel may move while it holds its lock.
//
// No user code runs inside the runtime. It might wait for a lock whose holder is stopped, and the
// holder might need the P of the waiting goroutine to go on. So a channel moves a value under its
// lock only if that move is known to be harmless.
#pragma once

#include <magpie/detail/cxx20.h>

#include <array>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace magpie {

// True if a T moves plainly: constructing it from another T, and then destroying the other one,
// only copies and clears fields of the two. Neither step allocates, frees, locks or throws, nor
// runs code that might.
//
// A Chan<T> keeps such values in its own memory. It carries any other value on the heap: the sender
// allocates and fills a box, the receiver empties and frees it, both outside the runtime.
//
// Trivially copyable types move plainly, and so do the types of the standard library below. For a
// type of your own whose members all do:
//
//   struct Job { std::string name; magpie::Chan<int> reply; };
//   template <> inline constexpr bool magpie::moves_plainly<Job> = true;
//
// Declare it directly after the type, so that every user of Chan<Job> sees it. If the declaration
// is not true, the program may hang now and then.
template <class T>
inline constexpr bool moves_plainly = (std::is_trivially_copyable_v<T> &&
                                       std::is_trivially_move_constructible_v<T>);

// A string or vector passes its memory on, or copies the characters inside itself. The source is
// left empty and owns nothing. (Not in libstdc++'s debug mode, whose containers move under a lock.)
#ifndef _GLIBCXX_DEBUG
template <class C>
inline constexpr bool moves_plainly<std::basic_string<C>> = std::is_integral_v<C>;
template <class T>
inline constexpr bool moves_plainly<std::vector<T>> = true;
#endif

// A pointer passes on what it owns. The source is left null: nothing is deleted and no deleter is
// called.
template <class T, class D>
inline constexpr bool moves_plainly<std::unique_ptr<T, D>> =
    (moves_plainly<D> && std::is_pointer_v<typename std::unique_ptr<T, D>::pointer>);
template <class T>
inline constexpr bool moves_plainly<std::shared_ptr<T>> = true;
template <class T>
inline constexpr bool moves_plainly<std::weak_ptr<T>> = true;
template <>
inline constexpr bool moves_plainly<std::exception_ptr> = true;

// libstdc++ keeps only trivially copyable functors inside the function, all others on the heap; the
// source is left empty. (libc++ copies small functors by user code.)
#ifdef __GLIBCXX__
template <class R, class... Args>
inline constexpr bool moves_plainly<std::function<R(Args...)>> = true;
#endif

// These move their parts. The source keeps parts that were moved from.
template <class T>
inline constexpr bool moves_plainly<std::optional<T>> = moves_plainly<T>;
template <class T, std::size_t n>
inline constexpr bool moves_plainly<std::array<T, n>> = moves_plainly<T>;
template <class A, class B>
inline constexpr bool moves_plainly<std::pair<A, B>> = (moves_plainly<A> && moves_plainly<B>);
template <class... Ts>
inline constexpr bool moves_plainly<std::tuple<Ts...>> = (moves_plainly<Ts> && ...);
template <class... Ts>
inline constexpr bool moves_plainly<std::variant<Ts...>> = (moves_plainly<Ts> && ...);

}  // namespace magpie
