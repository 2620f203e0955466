// allocation_test.cc: the pool of stacks is used inside the runtime, where nothing may wait for the
// allocator's locks.

#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "stack/pool.h"

namespace {
thread_local long allocator_calls = 0;
std::atomic<bool> refuses_all{false};
}  // namespace

void* operator new(std::size_t bytes) {
  ++allocator_calls;
  if (refuses_all.load(std::memory_order_relaxed)) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes != 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocator_calls;
  return refuses_all.load(std::memory_order_relaxed) ? nullptr
                                                     : std::malloc(bytes != 0 ? bytes : 1);
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

// They wait when main returns, and run() takes their stacks apart.
TEST(StacksOfTheirOwn, AreGivenBackAtTheEndOfRunWithoutMemory) {
  run([] {
    const Chan<void> never;
    for (int i = 0; i < 20; ++i)
      go(GoOptions{.stack_size = 64 * 1024}, [never]() mutable { never.recv(); });
    while (stats().waiting != 20) yield();
    refuses_all = true;
  });
  refuses_all = false;
}

}  // namespace
}  // namespace magpie::stack
