// An array that grows without the allocator.
#include <gtest/gtest.h>

#include <cstddef>
#include <utility>

#include "base/page_array.h"
#include "support/os_faults.h"

namespace magpie::base {
namespace {

TEST(PageArray, KeepsWhatIsThereWhenItGrows) {
  PageArray<int> array;
  EXPECT_EQ(array.capacity(), 0U);
  ASSERT_TRUE(array.grow_to(10));
  for (int i = 0; i < 10; ++i) array[static_cast<std::size_t>(i)] = i;
  ASSERT_TRUE(array.grow_to(100'000));
  EXPECT_EQ(array.capacity(), 100'000U);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(array[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(array[99'999], 0);
}

TEST(PageArray, WithoutMemoryNothingChanges) {
  PageArray<int> array;
  ASSERT_TRUE(array.grow_to(4));
  array[3] = 7;
  support::MapFaults refuse;
  EXPECT_FALSE(array.grow_to(1000));
  EXPECT_EQ(array.capacity(), 4U);
  EXPECT_EQ(array[3], 7);
}

TEST(PageArray, CanBeMoved) {
  PageArray<int> array;
  ASSERT_TRUE(array.grow_to(4));
  array[0] = 1;
  PageArray<int> other = std::move(array);
  EXPECT_EQ(other[0], 1);
  EXPECT_EQ(array.capacity(), 0U);  // NOLINT: that is the test
}

}  // namespace
}  // namespace magpie::base
