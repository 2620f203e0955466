// pool.h: stacks of one size, reused hot.
//
//     M's hand --give--> Cache (per P, no lock) --half--> Pool: warm list --beyond kWarmStacks--> cold
//              <--take--                        <--------                <-- carve or re-use -----
//
// Warm stacks keep their first pages. Cold ones gave all memory back to the system and cost address space only.
// What a stack used below its first kKeepBytes is given back whenever it leaves a P's cache.
// Slabs are large mappings that are never committed as a whole; they live until the Pool dies.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/lock.h"
#include "stack/stack.h"

namespace magpie::stack {

class Pool {
 public:
  explicit Pool(std::size_t stack_size)
      : stack_size_(stack_size), distance_(distance_of(stack_size)) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  std::size_t stack_size() const { return stack_size_; }

  // A stack, or null when the system gives no more memory.
  Stack* take();

  // Takes back stacks linked by next.
  void give(Stack* first);

  struct Usage {
    std::size_t stacks;  // ever carved
    std::size_t warm;    // waiting with memory
    std::size_t cold;    // waiting without
  };
  Usage usage();

 private:
  friend class Cache;
  static constexpr std::size_t kWarmStacks = 4096;
  static constexpr std::size_t kKeepBytes = 16 * 1024;
  static constexpr std::size_t kSlabBytes = std::size_t{64} << 20;

  struct Slab {
    std::byte* memory;
    std::size_t bytes;
    std::size_t carved;  // stacks made so far, from the low end
  };

  Stack* take_warm_locked();
  Stack* carve_and_unlock();
  bool add_slab_locked();
  void give_back_depths(Stack* stack) const;
  std::byte* memory_of(Stack* stack) const;

  // fixed after construction
  const std::size_t stack_size_;
  const std::size_t distance_;

  base::Lock lock_;
  // guarded by lock_
  Stack* warm_ = nullptr;
  std::size_t warm_count_ = 0;
  std::vector<std::byte*>
      cold_;  // room for every stack is reserved when its slab is made: giving cannot fail
  std::vector<Slab> slabs_;
  std::size_t carved_ = 0;
};

// The stacks that one P keeps at hand. Owner only; last in, first out.
class Cache {
 public:
  Stack* take(Pool& pool);
  void give(Pool& pool, Stack* stack);
  void give_all(Pool& pool);
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kCapacity = 64;
  static constexpr std::size_t kRefill = 8;

  void give_oldest(Pool& pool, std::size_t count);

  std::array<Stack*, kCapacity> stacks_;
  std::size_t size_ = 0;
};

}  // namespace magpie::stack
