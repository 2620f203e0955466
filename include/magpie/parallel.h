// parallel.h: loops whose iterations run on all Ps.
//
// The loop learns while it runs how many iterations make a good piece. Pieces of short iterations
// become long, so that sharing them costs next to nothing. Pieces of long iterations stay short, so
// that every P has work until the end. The body of a piece is a plain loop, which the compiler
// inlines and vectorises. A caller that knows better passes a `grain`: ranges of up to that many
// iterations are not divided. Without one, the loop makes at least eight pieces for each P.
//
// Iterations may run in any order and at the same time, so f must be callable from several
// goroutines at once. An iteration must not wait for another one: the two may follow each other in
// one piece. It may block (channels, locks, sleep, I/O) and contain further loops. All functions
// block until the loop is over. On a plain thread they block the thread, and the iterations run on
// goroutines. The first exception of an iteration is rethrown when everything that has begun has
// ended; the loop skips iterations that have not begun, as far as it knows in time. All throw
// std::logic_error if no runtime runs, std::invalid_argument for an empty function.
#pragma once

#include <magpie/detail/cxx20.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <ranges>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <magpie/detail/callable.h>
#include <magpie/detail/division.h>

namespace magpie {

namespace detail {

// What a loop may count with: as for std::cmp_less, integers but no characters.
template <class I>
concept LoopIndex = std::integral<I> && !std::same_as<I, bool> && !std::same_as<I, char> &&
                    !std::same_as<I, wchar_t> && !std::same_as<I, char8_t> &&
                    !std::same_as<I, char16_t> && !std::same_as<I, char32_t>;

// A range whose elements a loop may visit in any order.
template <class Range>
concept LoopElements = std::ranges::random_access_range<Range> && std::ranges::sized_range<Range>;

// The loop from first to last, as numbers of iterations. Both are indices or both are iterators.
template <class I>
struct LoopRange {
  I first;
  std::uint64_t size;

  I operator[](std::uint64_t iteration) const {
    if constexpr (LoopIndex<I>) {
      // Unsigned, so that it does not overflow half-way.
      return static_cast<I>(static_cast<std::uint64_t>(first) + iteration);
    } else {
      return first + static_cast<std::iter_difference_t<I>>(iteration);
    }
  }
};

template <LoopIndex I, LoopIndex J>
auto loop_range(I first, J last) {
  using Index = std::common_type_t<I, J>;
  if (std::cmp_greater_equal(first, last)) return LoopRange<Index>{static_cast<Index>(last), 0};
  if (!std::in_range<Index>(first))
    throw std::invalid_argument("magpie: a loop from a negative to an unsigned index");
  auto size = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first);
  return LoopRange<Index>{static_cast<Index>(first), size};
}

template <std::random_access_iterator I, std::sized_sentinel_for<I> S>
auto loop_range(I first, S last) {
  auto size = last - first;
  return LoopRange<I>{first, size > 0 ? static_cast<std::uint64_t>(size) : 0};
}

// What f is called with: the index, or the element.
template <class I>
decltype(auto) loop_argument(I at) {
  if constexpr (LoopIndex<I>) {
    return at;
  } else {
    return *at;
  }
}

template <class I, class F>
void run_for(LoopRange<I> range, F& f, std::size_t grain) {
  check_not_empty(f);
  struct Nothing {};
  auto leaf = [&f, range](std::uint64_t first, std::uint64_t last) {
    I end = range[last];
    for (I at = range[first]; at != end; ++at) std::invoke(f, loop_argument(at));
    return Nothing{};
  };
  auto combine = [](Nothing, Nothing) { return Nothing{}; };
  Division<Nothing, decltype(leaf), decltype(combine)>(range.size, grain, leaf, combine).run();
}

template <class I, class T, class Map, class Combine>
T run_reduction(LoopRange<I> range, const T& identity, Map& map, Combine& combine,
                std::size_t grain) {
  check_not_empty(map);
  check_not_empty(combine);
  auto leaf = [&, range](std::uint64_t first, std::uint64_t last) {
    T sum = identity;
    I end = range[last];
    if constexpr (std::invocable<Map&, I, I, T>) {
      sum = std::invoke(map, range[first], end, std::move(sum));
    } else {
      for (I at = range[first]; at != end; ++at)
        sum = std::invoke(combine, std::move(sum), std::invoke(map, loop_argument(at)));
    }
    return sum;
  };
  auto join = [&combine](T left, T right) -> T {
    return std::invoke(combine, std::move(left), std::move(right));
  };
  return Division<T, decltype(leaf), decltype(join)>(range.size, grain, leaf, join).run();
}

}  // namespace detail

// Calls f(i) for every i of [first, last). The index has the common type of first and last. Throws
// std::invalid_argument if that is unsigned and first is negative.
template <detail::LoopIndex I, detail::LoopIndex J, class F>
requires std::invocable<F&, std::common_type_t<I, J>>
void parallel_for(I first, J last, F&& f, std::size_t grain = 0) {
  detail::run_for(detail::loop_range(first, last), f, grain);
}

// Calls f(element) for every element of [first, last).
template <std::random_access_iterator I, std::sized_sentinel_for<I> S, class F>
requires std::invocable<F&, std::iter_reference_t<I>>
void parallel_for(I first, S last, F&& f, std::size_t grain = 0) {
  detail::run_for(detail::loop_range(first, last), f, grain);
}

// Calls f(element) for every element of the range.
template <detail::LoopElements Range, class F>
requires std::invocable<F&, std::ranges::range_reference_t<Range>>
void parallel_for(Range&& range, F&& f, std::size_t grain = 0) {
  auto first = std::ranges::begin(range);
  auto last = first + static_cast<std::ranges::range_difference_t<Range>>(std::ranges::size(range));
  detail::run_for(detail::loop_range(first, last), f, grain);
}

// Combines map(i), or map(element), of all iterations:
//
//   combine(... combine(combine(identity, map(a)), map(b)) ..., map(z))
//
// with the brackets set differently. So combine must be associative, and identity must not change
// what it is combined with. combine need not be commutative: neighbours stay in order. Returns
// identity for an empty range. Instead of map(i) the caller may pass a body(from, to, sum), which
// returns `sum` combined with all of [from, to). The result is a T: as with std::reduce, pass 0.0
// and not 0 for a sum of doubles.
template <class I, class S, class T, class Map, class Combine>
requires requires(I first, S last) { detail::loop_range(first, last); }
T parallel_reduce(I first, S last, T identity, Map&& map, Combine&& combine,
                  std::size_t grain = 0) {
  return detail::run_reduction(detail::loop_range(first, last), identity, map, combine, grain);
}

// As above, over the elements of a range.
template <detail::LoopElements Range, class T, class Map, class Combine>
T parallel_reduce(Range&& range, T identity, Map&& map, Combine&& combine, std::size_t grain = 0) {
  auto first = std::ranges::begin(range);
  auto last = first + static_cast<std::ranges::range_difference_t<Range>>(std::ranges::size(range));
  return detail::run_reduction(detail::loop_range(first, last), identity, map, combine, grain);
}

}  // namespace magpie
