// procs_test.cc: the number of Ps changes all the time, under everything else.

#include <magpie/magpie.h>

#include <atomic>
#include <vector>

#include "base/random.h"
#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using support::PlainThread;
using support::scaled;

long tree(int depth) {
  if (depth == 0) return 1;
  auto left = spawn([=] { return tree(depth - 1); });
  auto right = spawn([=] { return tree(depth - 1); });
  return left.join() + right.join();
}

RT_TEST(StressProcs, WorkIsNeitherLostNorDoubledWhileTheNumberChanges) {
  const std::uint64_t seed = support::printed_seed();
  std::atomic<bool> over{false};
  auto change = [&over, seed](std::uint64_t which) {
    base::Random random(seed + which);
    while (!over.load(std::memory_order_relaxed)) {
      set_procs(static_cast<int>(1 + random.next() % 8));
      for (std::uint32_t i = random.next() % 50; i > 0; --i) yield();
    }
  };
  PlainThread outside([&] { change(1); });
  WaitGroup changers;
  changers.go([&] { change(2); });

  for (int round = 0; round < scaled(60); ++round) {
    std::atomic<long> ran{0};
    WaitGroup all;
    for (int i = 0; i < 2000; ++i) {
      all.go([&ran] {
        yield();
        ran.fetch_add(1);
      });
    }
    auto leaves = spawn([] { return tree(9); });
    WaitGroup gate;
    gate.add(1);
    for (int i = 0; i < 200; ++i) all.go([&gate] { gate.wait(); });
    yield();
    gate.done();
    all.wait();
    ASSERT_EQ(ran, 2000);
    ASSERT_EQ(leaves.join(), 512);
  }
  over = true;
  changers.wait();
}

}  // namespace
}  // namespace magpie
