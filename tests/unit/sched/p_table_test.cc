// p_table_test.cc: the table of all Ps.

#include "sched/core/p_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

#include "unit/sched/fake_cpus.h"

namespace {
constexpr int kNeverRefuse = std::numeric_limits<int>::max();
thread_local int ps_before_refusal = kNeverRefuse;
}  // namespace

std::atomic<int> magpie::support::ps_to_refuse{0};

// A P is aligned to cache lines; the others are here because they belong together.
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  if (ps_before_refusal != kNeverRefuse && ps_before_refusal-- == 0) throw std::bad_alloc();
  if (magpie::support::ps_to_refuse > 0 && magpie::support::ps_to_refuse-- > 0)
    throw std::bad_alloc();
  auto aligned = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(aligned, (size + aligned - 1) / aligned * aligned))
    return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace magpie::sched {
namespace {

TEST(PTable, ATableThatNeverGrewIsEmpty) {
  PTable table;
  EXPECT_EQ(table.count(), 0u);
  EXPECT_TRUE(table.in_use().empty());
  EXPECT_TRUE(table.all().empty());
}

TEST(PTable, EveryPKnowsItsPlace) {
  PTable table;
  table.grow_to(5);
  table.set_in_use(5);
  ASSERT_EQ(table.in_use().size(), 5u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(table.in_use()[static_cast<std::size_t>(i)]->index, i);
}

TEST(PTable, PsNoLongerInUseAreStillThere) {
  PTable table;
  table.grow_to(5);
  table.set_in_use(5);
  table.set_in_use(2);
  EXPECT_EQ(table.count(), 2u);
  EXPECT_EQ(table.in_use().size(), 2u);
  EXPECT_EQ(table.all().size(), 5u);
}

TEST(PTable, GrowingKeepsThePsAndWhatReadersHold) {
  PTable table;
  table.grow_to(2);
  table.set_in_use(2);
  const std::span<P* const> before = table.in_use();
  P* first = before[0];
  P* second = before[1];
  table.grow_to(100);
  table.set_in_use(100);
  EXPECT_EQ(table.in_use()[0], first);
  EXPECT_EQ(table.in_use()[1], second);
  EXPECT_EQ(before[0], first);  // the old array lives on
  EXPECT_EQ(before[1], second);
}

TEST(PTable, GrowingToLessChangesNothing) {
  PTable table;
  table.grow_to(4);
  table.set_in_use(4);
  table.grow_to(2);
  EXPECT_EQ(table.all().size(), 4u);
  EXPECT_EQ(table.count(), 4u);
}

TEST(PTable, PsThatWereMadeBeforeMemoryRanOutAreInTheTableOfTheNextTry) {
  PTable table;
  table.grow_to(2);
  table.set_in_use(2);
  ps_before_refusal = 3;
  EXPECT_THROW(table.grow_to(10), std::bad_alloc);
  ps_before_refusal = kNeverRefuse;
  EXPECT_EQ(table.all().size(), 2u);
  table.grow_to(4);
  table.set_in_use(4);
  ASSERT_EQ(table.all().size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(table.in_use()[static_cast<std::size_t>(i)]->index, i);
}

}  // namespace
}  // namespace magpie::sched
