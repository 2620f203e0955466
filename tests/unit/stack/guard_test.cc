// guard_test.cc: memory below a stack faults when it is touched.

#include "stack/guard.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "memory.h"
#include "stack/pool.h"

namespace magpie::stack {
namespace {

// Chooses a kind for the rest of the test.
class Guard : public testing::Test {
 protected:
  void choose(const char* kind) {
    setenv("MAGPIE_GUARDS", kind, 1);
    choose_guards();
  }
  ~Guard() override {
    unsetenv("MAGPIE_GUARDS");
    choose_guards();
  }

  // Whether the kernel has MADV_GUARD_INSTALL: without it `advise` becomes `protect`.
  bool can_advise() {
    choose("advise");
    return guard_kind() == GuardKind::advise;
  }

  // Dies by a plain SIGSEGV, also where a sanitizer would report it.
  static void touch_byte(std::byte* at) {
    std::signal(SIGSEGV, SIG_DFL);
    *const_cast<volatile std::byte*>(at) = std::byte{1};
  }
  static void expect_guarded(Stack* stack) {
    const auto by_segv = testing::KilledBySignal(SIGSEGV);
    EXPECT_EXIT(touch_byte(stack->low - 1), by_segv, "");
    EXPECT_EXIT(touch_byte(stack->low - guard_bytes()), by_segv, "");
    touch_byte(stack->low);  // its own
  }
};

TEST_F(Guard, OfKindAdviseFaultsAndDoesNotSplitTheMapping) {
  if (!can_advise()) GTEST_SKIP() << "this kernel has no MADV_GUARD_INSTALL (Linux 6.13)";
  Pool pool(64 * 1024);
  Stack* first = pool.take();
  Stack* second = pool.take();
  const std::size_t before = count_mappings();
  for (int i = 0; i < 200; ++i) ASSERT_NE(pool.take(), nullptr);
  EXPECT_LT(count_mappings(), before + 50);  // the program may add some of its own meanwhile
  for (Stack* stack : {first, second}) expect_guarded(stack);
}

TEST_F(Guard, OfKindProtectFaults) {
  choose("protect");
  Pool pool(64 * 1024);
  Stack* first = pool.take();
  Stack* second = pool.take();
  EXPECT_EQ(guard_kind(), GuardKind::protect);
  for (Stack* stack : {first, second}) expect_guarded(stack);
}

TEST_F(Guard, OfKindSharedFaultsBelowTheFirstStackOfASlabOnly) {
  choose("shared");
  Pool pool(64 * 1024);
  Stack* first = pool.take();
  Stack* second = pool.take();
  expect_guarded(first);
  touch_byte(second->low - 1);  // the documented weakness: nothing happens
}

TEST_F(Guard, OfASingleStackFaultsWhateverTheKind) {
  for (const char* kind : {"advise", "protect"}) {
    choose(kind);
    Stack* stack = map_single(64 * 1024);
    expect_guarded(stack);
    unmap_single(stack);
  }
}

TEST_F(Guard, StillFaultsAfterItsStackWentColdAndCameBack) {
  choose("advise");
  Pool pool(64 * 1024);
  constexpr int kStacks = 5000;  // more than stay warm
  std::vector<Stack*> all;
  for (int i = 0; i < kStacks; ++i) {
    all.push_back(pool.take());
    ASSERT_NE(all.back(), nullptr);
  }
  pool.give(all);
  pool.trim(pool.next_trim_ns());
  ASSERT_GT(pool.usage().cold, 0u);
  while (pool.usage().warm != 0) ASSERT_NE(pool.take(), nullptr);
  Stack* cold = pool.take();
  ASSERT_EQ(pool.usage().stacks, static_cast<std::size_t>(kStacks));
  expect_guarded(cold);
}

TEST_F(Guard, OfAnUnknownKindIsRefusedWithTheKnownOnesInTheMessage) {
  try {
    choose("electric");
    ADD_FAILURE() << "was accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "MAGPIE_GUARDS=electric is unknown: use advise, protect or shared");
  }
}

TEST_F(Guard, OfKindAdviseLetsThereBeMoreStacksThanTheKernelAllowsMappings) {
#if defined(MAGPIE_TSAN)
  GTEST_SKIP() << "ThreadSanitizer's shadow of so many stacks takes gigabytes";
#endif
  if (!can_advise()) GTEST_SKIP() << "this kernel has no MADV_GUARD_INSTALL (Linux 6.13)";
  if (largest_count_of_mappings() > 70'000) {
    GTEST_SKIP() << "vm.max_map_count is " << largest_count_of_mappings() << " here";
  }
  const std::size_t before = count_mappings();
  Pool pool(64 * 1024);
  for (int i = 0; i < 70'000; ++i) ASSERT_NE(pool.take(), nullptr);
  EXPECT_EQ(guard_kind(), GuardKind::advise);
  EXPECT_LT(count_mappings(), before + 200);
}

TEST_F(Guard, OfKindProtectGivesWayToSharedOnesWhenMappingsRunOut) {
#if defined(MAGPIE_TSAN)
  GTEST_SKIP() << "ThreadSanitizer's shadow of so many stacks takes gigabytes";
#endif
  if (largest_count_of_mappings() > 70'000) {
    GTEST_SKIP() << "vm.max_map_count is " << largest_count_of_mappings() << " here";
  }
  EXPECT_EXIT(
      {
        choose("protect");
        Pool pool(64 * 1024);
        bool all_there = true;
        for (int i = 0; i < 40'000; ++i) all_there = all_there && pool.take() != nullptr;
        _exit(all_there && guard_kind() == GuardKind::shared ? 0 : 1);
      },
      testing::ExitedWithCode(0), "no more guard pages.*vm.max_map_count");
}

}  // namespace
}  // namespace magpie::stack
