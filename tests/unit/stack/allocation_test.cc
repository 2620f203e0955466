// allocation_test.cc: the pool of stacks is used inside the runtime, where nothing may wait for the
// allocator's locks.

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <vector>

#include "stack/pool.h"

namespace {
thread_local long allocator_calls = 0;
}

void* operator new(std::size_t bytes) {
  ++allocator_calls;
  if (void* memory = std::malloc(bytes != 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  ++allocator_calls;
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace magpie::stack {
namespace {

TEST(Pool, NeitherAllocatesNorFreesWhenItGrowsOrTakesStacksBackOrMakesThemCold) {
  Pool pool(64 * 1024);
  constexpr std::size_t kStacks = 6000;  // several slabs, and some that become cold
  std::vector<Stack*> stacks(kStacks);
  const long before = allocator_calls;
  for (Stack*& stack : stacks) stack = pool.take();
  pool.give(stacks);
  while (pool.next_trim_ns() != std::numeric_limits<std::int64_t>::max())
    pool.trim(pool.next_trim_ns());
  for (Stack*& stack : stacks) stack = pool.take();
  EXPECT_EQ(allocator_calls, before);
  EXPECT_EQ(pool.usage().stacks, kStacks);
}

}  // namespace
}  // namespace magpie::stack
