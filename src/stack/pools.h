// pools.h: a pool of stacks for each node, so that stacks lie in the memory of the node that uses
// them.
//
// Linux takes a page from the node of the thread that touches it first. A stack is carved, and
// touched, by a thread of the node whose pool it is from, and goes back to that pool, wherever it
// was used. With one node there is one pool, and nothing to choose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/atomic.h"
#include "stack/pool.h"

namespace magpie::stack {

class Pools {
 public:
  static constexpr std::uint32_t kMost = 16;

  explicit Pools(std::size_t stack_size)
      : Pools(stack_size, std::make_integer_sequence<std::uint8_t, kMost>()) {}

  std::size_t stack_size() const { return pools_[0].stack_size(); }

  // From now on pools 0 to `count` - 1 are used. There are never fewer.
  void use(std::uint32_t count);

  // A stack of that pool, else of another. Null: the system gives no more memory.
  Stack* take(std::uint32_t number);
  // Each goes back to the pool that it is from.
  void give(std::span<Stack* const> stacks);
  void give(Stack* stack) { give({&stack, 1}); }

  void trim(std::int64_t now_ns);
  std::int64_t next_trim_ns() const;

  Pool& of(std::uint32_t number) { return pools_[number]; }

 private:
  template <std::uint8_t... Numbers>
  Pools(std::size_t stack_size, std::integer_sequence<std::uint8_t, Numbers...>)
      : pools_{Pool(stack_size, Numbers)...} {}

  std::uint32_t count() const { return count_.load(base::relaxed); }

  Pool pools_[kMost];
  // atomic, a hint: it grows before a stop of the world, after which threads carve from the new
  // pool. So a thread that has a stack of a pool knows of the pool.
  base::Atomic<std::uint32_t> count_{1};
};

// The stacks that one P keeps at hand. Owner only. Last in, first out. `number` is the pool of the
// P's node.
class Cache {
 public:
  Stack* take(Pools& pools, std::uint32_t number);
  void give(Pools& pools, Stack* stack);
  void give_all(Pools& pools);
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kCapacity = 64;
  static constexpr std::size_t kRefill = 16;

  void refill(Pool& pool);
  void give_oldest(Pools& pools, std::size_t count);

  std::array<Stack*, kCapacity> stacks_;
  std::size_t size_ = 0;
  std::size_t untouched_ = 0;  // this many of the oldest came from the pool
};

}  // namespace magpie::stack
