// plain_move.h: which values a channel may move while it is locked.
//
// No code of a user runs inside the runtime: it might wait for a lock whose holder is stopped and
// needs, to go on, the P of the goroutine that waits. So a channel moves a value under its lock
// only if that is known to be harmless.
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

// Whether a T moves plainly: to construct it from another T, and to destroy the other one then,
// only copies and clears fields of the two. Neither allocates, frees, locks, throws, or runs code
// of which this is not known.
//
// A Chan<T> keeps such values in its own memory. It carries any other on the heap: the sender
// allocates and fills a box and the receiver empties and frees it, both outside the runtime.
//
// Trivially copyable types move plainly, and so do those of the standard library that follow. For a
// type of your own, all members of which do:
//
//   struct Job { std::string name; magpie::Chan<int> reply; };
//   template <> inline constexpr bool magpie::moves_plainly<Job> = true;
//
// Say so right behind the type, so that all who make a Chan<Job> see it. If it is not true, a program
// may stop for ever now and then.
template <class T>
inline constexpr bool moves_plainly = (std::is_trivially_copyable_v<T> &&
                                       std::is_trivially_move_constructible_v<T>);

// A string or vector passes its memory on, or copies the characters inside itself. What is left is
// empty and owns nothing. (Not with libstdc++'s debug mode: its containers move under a lock.)
#ifndef _GLIBCXX_DEBUG
template <class C>
inline constexpr bool moves_plainly<std::basic_string<C>> = std::is_integral_v<C>;
template <class T>
inline constexpr bool moves_plainly<std::vector<T>> = true;
#endif

// A pointer passes on what it owns. What is left is null: nothing is deleted, no deleter is called.
template <class T, class D>
inline constexpr bool moves_plainly<std::unique_ptr<T, D>> =
    (moves_plainly<D> && std::is_pointer_v<typename std::unique_ptr<T, D>::pointer>);
template <class T>
inline constexpr bool moves_plainly<std::shared_ptr<T>> = true;
template <class T>
inline constexpr bool moves_plainly<std::weak_ptr<T>> = true;
template <>
inline constexpr bool moves_plainly<std::exception_ptr> = true;

// libstdc++ keeps only trivially copyable functors inside the function, others on the heap; the
// function that is left is empty. (libc++ copies small functors, by code of the user.)
#ifdef __GLIBCXX__
template <class R, class... Args>
inline constexpr bool moves_plainly<std::function<R(Args...)>> = true;
#endif

// These move their parts. What is left are parts that were moved from.
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
