// stacks_test.cc: where a goroutine's stack ends for unwinders, and stacks of a size that was asked
// for.
#include <execinfo.h>
#include <unwind.h>

#include <atomic>
#include <stdexcept>

#include "support/overtake.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using support::be_overtaken;

struct Frames {
  int count = 0;
};

_Unwind_Reason_Code count_frame(_Unwind_Context*, void* frames) {
  return ++static_cast<Frames*>(frames)->count < 1000 ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

void expect_clean_end_of_stack() {
  Frames frames;
  EXPECT_EQ(_Unwind_Backtrace(count_frame, &frames), _URC_END_OF_STACK);
  EXPECT_GT(frames.count, 2);
  EXPECT_LT(frames.count, 100);
  void* addresses[256];
  EXPECT_LT(backtrace(addresses, 256), 100);
}

RT_TEST(EndOfStack, UnwindersStopCleanlyInFreshParkedInPlaceAndOwnStackGoroutines) {
  expect_clean_end_of_stack();
  WaitGroup all;
  all.go(expect_clean_end_of_stack);
  all.go([] {
    be_overtaken();
    expect_clean_end_of_stack();
  });
  all.wait();
  spawn(expect_clean_end_of_stack).join();
  spawn(GoOptions{.stack_size = 1 << 20}, [] {
    be_overtaken();
    expect_clean_end_of_stack();
  }).join();
}

// Goes down so many frames of about a kilobyte.
[[gnu::noinline]] int go_down(int frames) {
  volatile char ballast[1000];
  ballast[0] = static_cast<char>(frames);
  return frames == 0 ? ballast[0] : go_down(frames - 1) + ballast[0];
}

RT_TEST(StackSizes, AGoroutineGetsTheStackItAskedForAndAFailureThereIsCaughtAsAnywhere) {
  EXPECT_NO_THROW(spawn(GoOptions{.stack_size = 8 << 20}, [] {
                    go_down(2000);
                    be_overtaken();
                  }).join());
  EXPECT_THROW(spawn(GoOptions{.stack_size = 1 << 20},
                     [] {
                       be_overtaken();
                       throw std::logic_error("deep");
                     })
                   .join(),
               std::logic_error);
}

RT_TEST(StackSizes, ManyGoroutinesWithStacksOfTheirOwnComeAndGo) {
  std::atomic<int> done{0};
  WaitGroup all;
  for (int i = 0; i < 200; ++i) {
    all.add(1);
    go(GoOptions{.stack_size = 512 * 1024}, [&] {
      go_down(100);
      be_overtaken();
      ++done;
      all.done();
    });
  }
  all.wait();
  EXPECT_EQ(done, 200);
}

}  // namespace
}  // namespace magpie
