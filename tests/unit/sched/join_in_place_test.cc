// join_in_place_test.cc: joiners that run the goroutine they join.

#include <magpie/magpie.h>

#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>
#include <stdexcept>

#include "support/rt_test.h"

namespace magpie {
namespace {

using support::eventually;

constexpr std::size_t kKiB = 1024;

// Touches so much of the stack.
[[gnu::noinline]] int use_stack(std::size_t bytes) {
  auto* memory = static_cast<volatile char*>(__builtin_alloca(bytes));
  for (std::size_t i = 0; i < bytes; i += 512) memory[i] = 1;
  return memory[bytes / 1024 * 512];
}

// A joiner that has used so much itself.
[[gnu::noinline]] int join_below(std::size_t bytes, std::size_t child_uses) {
  auto* memory = static_cast<volatile char*>(__builtin_alloca(bytes + 1));
  for (std::size_t i = 0; i < bytes; i += 512) memory[i] = 1;
  memory[bytes] = 0;
  return spawn([child_uses] { return use_stack(child_uses); }).join() + memory[bytes];
}

// Three quarters of a stack of 256 KiB, of which the guard takes 16, and a little less for frames
// of the library.
constexpr std::size_t kGuaranteed = 160 * kKiB;

int chain(int length) {
  if (length == 0) return 0;
  return 1 + spawn([length] { return chain(length - 1); }).join();
}

int tree(int depth) {
  if (depth == 0) return 1;
  auto left = spawn([depth] { return tree(depth - 1); });
  auto right = spawn([depth] { return tree(depth - 1); });
  return left.join() + right.join();
}

// With one proc nobody else can have started it.
TEST(JoinInPlace, AGoroutineThatHasNotStartedIsRunByItsJoiner) {
  run(Options{.procs = 1}, [] {
    const std::uint64_t before = stats().total.joined_in_place;
    const std::uint64_t my_id = goroutine_id();
    std::uint64_t child_id = 0;
    spawn([&] { child_id = goroutine_id(); }).join();
    EXPECT_EQ(stats().total.joined_in_place, before + 1);
    EXPECT_NE(child_id, 0u);
    EXPECT_NE(child_id, my_id);  // a goroutine of its own all the same
    EXPECT_EQ(goroutine_id(), my_id);
  });
}

TEST(JoinInPlace, TheEntryLeftInTheQueueIsNotRunAgain) {
  run(Options{.procs = 1}, [] {
    int first_runs = 0, second_runs = 0, third_runs = 0;
    auto first = spawn([&] { ++first_runs; });
    auto second = spawn([&] { ++second_runs; });
    go([&] { ++third_runs; });
    first.join();  // from the middle of the ring
    second.join();
    EXPECT_EQ(stats().total.joined_in_place, 2u);
    EXPECT_EQ(third_runs, 0);
    EXPECT_TRUE(eventually([&] { return third_runs == 1; }));
    EXPECT_EQ(first_runs, 1);
    EXPECT_EQ(second_runs, 1);
    EXPECT_EQ(num_goroutines(), 1u);
  });
}

TEST(JoinInPlace, RecordsOfJoinedGoroutinesMayBeReusedWhileTheirEntriesAreStillQueued) {
  run(Options{.procs = 1}, [] {
    std::atomic<int> runs{0};  // a goroutine whose P was taken runs on beside the next one
    for (int round = 0; round < 5000; ++round) {
      auto first = spawn([&] { ++runs; });
      auto second = spawn([&] { ++runs; });
      first.join();
      second.join();
    }
    EXPECT_EQ(runs, 10'000);
    yield();
    EXPECT_EQ(runs, 10'000);
  });
}

TEST(JoinInPlace, AGoroutineThatAskedForAStackIsNotRunOnTheJoiners) {
  run(Options{.procs = 1}, [] {
    const std::uint64_t before = stats().total.joined_in_place;
    EXPECT_EQ(spawn(GoOptions{.stack_size = 1024 * 1024}, [] { return 7; }).join(), 7);
    EXPECT_EQ(stats().total.joined_in_place, before);
  });
}

RT_TEST(JoinInPlace, AGoroutineHasThreeQuartersOfAStackHoweverMuchItsJoinerHasUsed) {
  for (std::size_t used = 0; used <= 200 * kKiB; used += 20 * kKiB)
    EXPECT_EQ(join_below(used, kGuaranteed), 1) << used;
}

RT_TEST(JoinInPlace, AGoroutineHasThreeQuartersOfAUsualStackWhenItsJoinersIsSmaller) {
  auto joiner =
      spawn(GoOptions{.stack_size = 64 * kKiB}, [] { return join_below(0, kGuaranteed); });
  EXPECT_EQ(joiner.join(), 1);
}

RT_TEST(JoinInPlace, AGoroutineRunByItsJoinerMayBlock) {
  for (int round = 0; round < 300; ++round) {
    WaitGroup gate;
    gate.add(1);
    auto handle = spawn([&gate, round] {
      gate.wait();
      return round;
    });
    go([&gate] { gate.done(); });
    ASSERT_EQ(handle.join(), round);
  }
}

RT_TEST(JoinInPlace, AGoroutineThatTheJoinerHasJustReadiedIsNotRunASecondTime) {
  WaitGroup gate;
  gate.add(1);
  int ran = 0;
  auto handle = spawn([&] {
    ++ran;
    gate.wait();
  });
  ASSERT_TRUE(eventually([] { return stats().waiting == 1; }));
  gate.done();  // now it is next on this P
  handle.join();
  EXPECT_EQ(ran, 1);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they know only our switches
// A stack that the program made, of 64 KiB above as many bytes that nobody may touch.
class ForeignStack {
 public:
  ForeignStack()
      : memory_(static_cast<char*>(
            mmap(nullptr, 2 * kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    mprotect(memory_ + kBytes, kBytes, PROT_READ | PROT_WRITE);
  }
  ~ForeignStack() { munmap(memory_, 2 * kBytes); }
  ForeignStack(const ForeignStack&) = delete;
  ForeignStack& operator=(const ForeignStack&) = delete;

  void call(void (*f)()) {
    ucontext_t there, here;
    getcontext(&there);
    there.uc_stack.ss_sp = memory_ + kBytes;
    there.uc_stack.ss_size = kBytes;
    there.uc_link = &here;
    makecontext(&there, f, 0);
    swapcontext(&here, &there);
  }

 private:
  static constexpr std::size_t kBytes = 64 * kKiB;
  char* memory_;
};

// Stacks that the program maps lie above the goroutine's, or below.
TEST(JoinInPlace, AJoinerOnAStackOfTheProgramsOwnLeavesTheGoroutineToAnother) {
  run(Options{.procs = 1}, [] {
    ForeignStack foreign[2];
    const std::uint64_t before = stats().total.joined_in_place;
    for (ForeignStack& stack : foreign)
      stack.call([] { EXPECT_EQ(spawn([] { return use_stack(kGuaranteed); }).join(), 1); });
    EXPECT_EQ(stats().total.joined_in_place, before);
  });
}
#endif

RT_TEST(JoinInPlace, AGoroutineRunByItsJoinerMayYield) {
  std::atomic<int> others{0};
  for (int i = 0; i < 20; ++i) go([&others] { others.fetch_add(1); });
  auto handle = spawn([] {
    for (int i = 0; i < 100; ++i) yield();
    return 7;
  });
  EXPECT_EQ(handle.join(), 7);
  EXPECT_TRUE(eventually([&] { return others.load() == 20; }));
}

RT_TEST(JoinInPlace, BlockedInPlaceBelowOtherJoinersAllStillReturn) {
  WaitGroup gate;
  gate.add(1);
  auto outer = spawn([&gate] {
    auto middle = spawn([&gate] {
      auto inner = spawn([&gate] {
        gate.wait();
        return 1;
      });
      return inner.join() + 1;
    });
    return middle.join() + 1;
  });
  go([&gate] {
    for (int i = 0; i < 10; ++i) yield();
    gate.done();
  });
  EXPECT_EQ(outer.join(), 3);
}

RT_TEST(JoinInPlace, AChainOfTenThousandJoinsDoesNotOverflowTheStack) {
  EXPECT_EQ(chain(10'000), 10'000);
}

RT_TEST(JoinInPlace, AForkJoinTreeCountsItsLeaves) { EXPECT_EQ(tree(12), 4096); }

RT_TEST(JoinInPlace, AGoroutineRunDuringCatchHasExceptionsOfItsOwn) {
  try {
    throw std::runtime_error("mine");
  } catch (...) {
    spawn([] {
      EXPECT_EQ(std::current_exception(), nullptr);
      try {
        throw std::logic_error("the child's");
      } catch (const std::logic_error&) {
        yield();
      }
    }).join();
    try {
      throw;
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "mine");
    }
  }
}

}  // namespace
}  // namespace magpie
