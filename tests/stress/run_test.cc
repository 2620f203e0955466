// run_test.cc: run() again and again, ending at any moment.

#include <magpie/magpie.h>

#include <atomic>
#include <memory>

#include "base/random.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using support::scaled;

// Main returns while others yield, wait, start goroutines and join: whatever they are at, run()
// ends.
TEST(StressRun, EndsAtAnyMoment) {
  base::Random random(support::printed_seed());
  for (const int n : {1, 2, 8}) {
    for (int round = 0; round < scaled(600); ++round) {
      WaitGroup never;
      never.add(1);
      auto held = std::make_shared<int>(7);
      run(Options{.procs = n}, [&] {
        for (int i = 0; i < 10; ++i) {
          go([] {
            for (;;) yield();
          });
          go([&never] { never.wait(); });
          go([] {
            for (;;) spawn([] { yield(); }).join();
          });
        }
        for (std::uint32_t i = random.next() % 30; i > 0; --i) yield();
        for (int i = 0; i < 300; ++i) go([raw = held.get()] { (void)*raw; });
      });
      ASSERT_EQ(num_goroutines(), 0u);
    }
  }
}

TEST(StressRun, BeginsAndEndsManyTimes) {
  for (int round = 0; round < scaled(8000); ++round) {
    ASSERT_EQ(run(Options{.procs = 1 + round % 8},
                  [round] { return spawn([round] { return round; }).join(); }),
              round);
  }
}

}  // namespace
}  // namespace magpie
