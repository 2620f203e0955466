// p_table_test.cc: the table of all Ps.

#include "sched/core/p_table.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace magpie::sched
