// stack_test.cc: one stack: where things lie, what sizes there are, mappings of its own.

#include "stack/stack.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "memory.h"
#include "stack/guard.h"
#include "support/os_faults.h"

namespace magpie::stack {
namespace {

constexpr std::size_t kStackSize = 256 * 1024;

std::string complaint_about(std::size_t size) {
  try {
    check_size(size);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(StackSize, BelowTheMinimumIsRefusedWithTheMinimumInTheMessage) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, page_size(), minimum_size() - 1}) {
    EXPECT_NE(complaint_about(size).find(std::to_string(size) + " is too small"),
              std::string::npos);
    EXPECT_NE(complaint_about(size).find(std::to_string(minimum_size())), std::string::npos);
  }
}

TEST(StackSize, ThatIsNotWholePagesIsRefusedWithTheNextGoodOneInTheMessage) {
  const std::string complaint = complaint_about(kStackSize + 1);
  EXPECT_NE(complaint.find("not a multiple of the page size"), std::string::npos) << complaint;
  EXPECT_NE(complaint.find(std::to_string(kStackSize + page_size())), std::string::npos)
      << complaint;
}

TEST(StackSize, ThatIsAbsurdlyLargeIsRefused) {
  EXPECT_NE(complaint_about(std::size_t{1} << 50), "");
  EXPECT_NE(complaint_about(static_cast<std::size_t>(-1) / page_size() * page_size()), "");
}

TEST(StackSize, EverySizeFromTheMinimumOnInWholePagesIsAccepted) {
  for (const std::size_t size :
       {minimum_size(), minimum_size() + page_size(), kStackSize, kStackSize * 1024}) {
    EXPECT_EQ(complaint_about(size), "");
  }
}

TEST(Stack, OfTheSmallestAllowedSizeHasRoomToRunOn) {
  Stack* stack = map_single(minimum_size());
  ASSERT_NE(stack, nullptr);
  auto* top = static_cast<std::byte*>(stack->top());
  EXPECT_GE(top, stack->low + 8 * 1024);
  touch(stack->low, top);
  unmap_single(stack);
}

TEST(Stack, ItsRecordLiesAboveItsTopInTheSamePage) {
  Stack* stack = map_single(kStackSize);
  ASSERT_NE(stack, nullptr);
  const auto top = reinterpret_cast<std::uintptr_t>(stack->top());
  const auto record = reinterpret_cast<std::uintptr_t>(stack);
  EXPECT_LE(top, record);
  EXPECT_GE(top, record - kColours * kColourStep);
  EXPECT_EQ((top - 1) / page_size(), record / page_size());
  EXPECT_EQ(top % 16, 0u);
  EXPECT_EQ(resident_pages(stack->low, stack),
            0u);  // a stack that nobody ran on costs its last page only
  unmap_single(stack);
}

TEST(Stack, KnowsItsGuard) {
  Stack* stack = map_single(kStackSize);
  ASSERT_NE(stack, nullptr);
  EXPECT_FALSE(stack->in_guard(stack->low));
  EXPECT_TRUE(stack->in_guard(stack->low - 1));
  EXPECT_TRUE(stack->in_guard(stack->low - guard_bytes()));
  EXPECT_FALSE(stack->in_guard(stack->low - guard_bytes() - 1));
  unmap_single(stack);
}

TEST(Stack, OfItsOwnMappingIsGivenBackWhole) {
  const std::size_t before = count_mappings();
  for (int round = 0; round < 100; ++round) {
    Stack* stack = map_single(kStackSize);
    ASSERT_NE(stack, nullptr);
    EXPECT_FALSE(stack->pooled);
    touch(stack->low, static_cast<std::byte*>(stack->top()));
    unmap_single(stack);
  }
  EXPECT_LE(count_mappings(), before + 10);
}

TEST(Stack, ForWhichThereIsNoMemoryIsNull) {
  {
    support::MapFaults refuse_all;
    EXPECT_EQ(map_single(kStackSize), nullptr);
  }
  Stack* stack = map_single(kStackSize);
  ASSERT_NE(stack, nullptr);
  unmap_single(stack);
}

}  // namespace
}  // namespace magpie::stack
