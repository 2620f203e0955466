// stack.h: one stack for goroutines to run on.
//
//    low addresses                                                            high addresses
//    | guard: faults when touched |  usable, committed page by page   <- grows | colour | Stack |
//    ^ low - guard_bytes()        ^ low                                  top() ^        ^ this
//
// The record lives at the end of the memory it describes, in the page that is touched first anyway.
// So an idle goroutine costs one page. The colour moves the top by a different number of cache
// lines in neighbouring stacks. Otherwise a hundred stacks whose hot frames share one page offset
// would fight for the same eight lines of the first-level cache.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/sanitizer.h"

namespace magpie::stack {

struct Stack {
  // fixed after construction
  std::byte* low;  // lowest usable byte; guard_bytes() below it are never used (see guard.h)
  void* first_frame;
  bool pooled;                   // from a Pool; else mapped for one goroutine
  std::uint8_t pool_number = 0;  // of the pool that it is from

  // owner only: the M that runs on it, or the cache that holds it
  std::uint32_t times_given = 0;  // to a pool
  base::Fiber fiber;
  Stack* next_left = nullptr;  // as run() ends, see life_cycle.cc

  // Where the first frame begins: 16-aligned.
  void* top() const { return first_frame; }
  std::size_t usable() const {
    return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(this) - low);
  }
  // All of it, guard and record included: the size that was asked for.
  std::size_t size() const;
  bool in_guard(const void* address) const;
};

// Three quarters of a page: the rest of it holds a parked goroutine's frames.
inline constexpr std::size_t kColours = 48;
inline constexpr std::size_t kColourStep = 64;

std::size_t page_size();

// How far apart the stacks of a slab lie: a page more than their size. At a power of two the first
// pages of all stacks would fall into the same few sets of the processor's page-table cache.
std::size_t distance_of(std::size_t size);

// The smallest stack: its guard, and 16 KiB to run on, with the record. 32 KiB with pages of 4 KiB.
std::size_t minimum_size();

// Throws std::invalid_argument unless a stack of that many bytes can be made: whole pages,
// minimum_size() or more.
void check_size(std::size_t size);

// A stack of its own mapping, for a goroutine that asked for a size. Null when there is no memory.
Stack* map_single(std::size_t size);
void unmap_single(Stack* stack);

// Puts a record at the end of [memory, memory + size) and announces the stack to sanitizers.
Stack* construct(std::byte* memory, std::size_t size);

}  // namespace magpie::stack
