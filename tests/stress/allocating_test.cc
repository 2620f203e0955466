// allocating_test.cc: goroutines are stopped while they hold the allocator's lock, and the runtime
// grows meanwhile. If it needed that lock for it, with a P, the stopped goroutine's turn would
// never come, and the test would time out.

#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <malloc.h>

#include <atomic>
#include <chrono>
#include <cstdlib>

#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;

void allocate_until(const std::atomic<bool>& enough) {
  void* blocks[256] = {};
  unsigned random = 1;
  while (!enough.load()) {
    random = random * 1664525 + 1013904223;
    void*& block = blocks[random >> 16 & 255];
    std::free(block);
    block = std::malloc(1100 + (random >> 8) % 9000);
  }
  for (void* block : blocks) std::free(block);
}

// Every 250 goroutines that wait need another slab of stacks.
void make_stacks_beside_allocating(int procs, int allocating) {
  run(Options{.procs = procs, .time_slice = 1ms}, [&] {
    std::atomic<bool> enough{false};
    WaitGroup group;
    Chan<int> closed_at_the_end;
    for (int i = 0; i < allocating; ++i) group.go([&] { allocate_until(enough); });
    const int waiting = support::scaled(60'000);
    for (int started = 0; started < waiting; ++started) {
      group.go([&] { EXPECT_EQ(closed_at_the_end.recv(), std::nullopt); });
      if (started % 250 == 0) sleep_for(1ms);
    }
    enough = true;
    closed_at_the_end.close();
    group.wait();
  });
}

// One lock for all threads, as small containers set it.
TEST(StressAllocating, StacksAreMadeAtOneProcWhileTheAllocatorsOnlyLockIsHeld) {
  mallopt(M_ARENA_MAX, 1);
  make_stacks_beside_allocating(1, 1);
}
TEST(StressAllocating, StacksAreMadeAtTwoProcsWhileTheAllocatorsOnlyLockIsHeld) {
  mallopt(M_ARENA_MAX, 1);
  make_stacks_beside_allocating(2, 2);
}
TEST(StressAllocating, StacksAreMadeAtTwoProcsWhileManyAllocate) {
  make_stacks_beside_allocating(2, 40);
}

}  // namespace
}  // namespace magpie
