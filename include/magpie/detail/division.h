// division.h: how parallel_for and parallel_reduce divide a loop among goroutines. Not part of the
// API.
//
// A range that is longer than the grain is halved: the right half becomes a goroutine, the left
// half is divided further, then the right half is joined. The join runs in place what no P has
// started by then. So a single P goes through the loop from left to right, and idle Ps steal the
// oldest, largest halves.
//
// Grain     The loop learns how many iterations make a piece while it runs. The grain starts at
//           one. A piece that took less time than a piece should makes the grain twice its length,
//           or eight times if it took much less. The leftmost range, once it is at most half the
//           share of a P, is not halved at first: a piece is cut off its left end, and the rest
//           becomes a goroutine. So a loop of trivial bodies has its grain after the first few
//           pieces, of 1, 8, 64, ... iterations. A loop of long ones never raises it.
// Rejected  To split only when a P is idle saves spawns, of which there are few. But iterations
//           behind one that blocks would wait for it although Ps are idle. Here all of the loop is
//           in some queue at any time.
// Failure   The first exception stops the loop: pieces that have not begun are skipped. It is
//           rethrown when every piece has ended, so nothing refers to the caller's variables then.
#pragma once

#include <magpie/detail/cxx20.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include <magpie/detail/api.h>
#include <magpie/go.h>
#include <magpie/runtime.h>

namespace magpie::detail {

// What the pieces of one loop share, apart from what they compute.
class MAGPIE_API LoopControl {
 public:
  // `grain` 0: the loop learns it.
  LoopControl(std::uint64_t iterations, std::uint64_t grain) noexcept;

  std::uint64_t grain() const noexcept { return grain_.load(std::memory_order_relaxed); }
  // Half of a P's share. A longer range is halved while nothing is known yet: other Ps get the
  // other half at once.
  std::uint64_t halved_above() const noexcept { return halved_above_; }
  // How often a piece may be cut off, to learn. Bounded, as each rest is joined inside the join of
  // the one before, on the same stack.
  int lessons() const noexcept { return learns_ ? 4 : 0; }
  bool has_failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

  // Around a piece: when it begins, in ticks of the CPU's counter, and how long it was.
  std::uint64_t begin_piece() const noexcept;
  void end_piece(std::uint64_t iterations, std::uint64_t begun_ticks) noexcept;

  // Call it in a catch block. Keeps the first exception and stops the loop.
  void fail() noexcept;

  // Call it when every piece has ended.
  void rethrow_failure() {
    if (failure_ != nullptr) std::rethrow_exception(std::move(failure_));
  }

 private:
  const std::uint64_t halved_above_;
  const std::uint64_t largest_grain_;
  const bool learns_;
  // When the loop began, by both clocks: how long a tick is.
  const std::int64_t loop_begun_ns_;
  const std::uint64_t loop_begun_ticks_;
  // atomic, a hint: pieces see what others computed through their joins.
  std::atomic<std::uint64_t> grain_;
  // atomic, a lock: late is early enough. Exchanged, so that one piece writes failure_; the last
  // join publishes it.
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
};

// A loop over [0, iterations). leaf(first, last) computes a piece, combine(left, right) joins the
// results of neighbours; both return an R. After a failure nothing more is computed, and results
// are missing.
template <class R, class Leaf, class Combine>
class Division {
 public:
  Division(std::uint64_t iterations, std::uint64_t grain, Leaf leaf, Combine combine)
      : iterations_(iterations),
        control_(iterations, grain),
        leaf_(std::move(leaf)),
        combine_(std::move(combine)) {}

  // Blocks. Pieces run on goroutines only: a plain thread waits. Throws std::logic_error if no
  // runtime runs.
  R run() {
    std::optional<R> result;
    if (goroutine_id() != 0) {
      result = divide(0, iterations_, control_.lessons());
    } else {
      spawn([&] { result = divide(0, iterations_, control_.lessons()); }).join();
    }
    control_.rethrow_failure();
    return *std::move(result);
  }

 private:
  // On the stack of the goroutine that divides, so that the closure of the new goroutine is one
  // pointer.
  struct Half {
    Division& whole;
    const std::uint64_t first, last;
    const int lessons;
    std::optional<R> result = {};

    void compute() noexcept {
      try {
        result = whole.divide(first, last, lessons);
      } catch (...) {  // the move of an R
        whole.control_.fail();
      }
    }
  };

  // `lessons`: how often a piece may be cut off this range. 0: the range is not the leftmost.
  std::optional<R> divide(std::uint64_t first, std::uint64_t last, int lessons) noexcept {
    if (control_.has_failed()) return std::nullopt;
    std::uint64_t grain = control_.grain();
    std::uint64_t length = last - first;
    if (length <= grain) return piece(first, last);
    bool cuts_off = lessons != 0 && length <= control_.halved_above();
    std::uint64_t middle = first + (cuts_off ? grain : length / 2);
    Half right{*this, middle, last, cuts_off ? lessons - 1 : 0};
    JoinHandle<void> right_goroutine = start(right);
    std::optional<R> left = cuts_off ? piece(first, middle) : divide(first, middle, lessons);
    if (right_goroutine.joinable()) {
      right_goroutine.join();
    } else {
      right.compute();
    }
    return combined(left, right.result);
  }

  // Returns an empty handle if there is no memory for a goroutine; then one half runs after the
  // other.
  static JoinHandle<void> start(Half& half) noexcept {
    try {
      return spawn([&half] { half.compute(); });
    } catch (const std::bad_alloc&) {
      return {};
    }
  }

  // Not inlined: the user's loop gets all registers.
  [[gnu::noinline]] std::optional<R> piece(std::uint64_t first, std::uint64_t last) noexcept {
    try {
      std::uint64_t begun_ticks = control_.begin_piece();
      std::optional<R> result(leaf_(first, last));
      control_.end_piece(last - first, begun_ticks);
      return result;
    } catch (...) {
      control_.fail();
      return std::nullopt;
    }
  }

  std::optional<R> combined(std::optional<R>& left, std::optional<R>& right) noexcept {
    if (!left || !right) return std::nullopt;
    try {
      return std::optional<R>(combine_(*std::move(left), *std::move(right)));
    } catch (...) {
      control_.fail();
      return std::nullopt;
    }
  }

  const std::uint64_t iterations_;
  LoopControl control_;
  Leaf leaf_;
  Combine combine_;
};

}  // namespace magpie::detail
