// search_test.cc: who searches and which Ps are idle, in one word.

#include "sched/rest/search.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace magpie::sched {
namespace {

class SearchTest : public ::testing::Test {
 protected:
  SearchTest() { base::prepare_fences(); }

  void expect(std::uint32_t searching, std::uint32_t idle) {
    EXPECT_EQ(search.view().searching, searching);
    EXPECT_EQ(search.view().idle, idle);
  }

  Search search;
};

TEST_F(SearchTest, AtFirstNobodySearchesAndNothingIsIdle) { expect(0, 0); }

TEST_F(SearchTest, APublisherOwesNothingWhileEveryPIsHeld) {
  EXPECT_FALSE(search.try_book_searcher());
  expect(0, 0);
}

TEST_F(SearchTest, APublisherOwesASearcherWhenAPIsIdleAndNobodySearches) {
  search.add_idle();
  EXPECT_TRUE(search.try_book_searcher());
  expect(1, 1);
}

TEST_F(SearchTest, WhileOneSearchesThePublisherLeavesItToThatOne) {
  search.add_idle();
  search.add_idle();
  ASSERT_TRUE(search.try_book_searcher());
  search.remove_idle();
  expect(1, 1);
  EXPECT_FALSE(search.try_book_searcher());
}

TEST_F(SearchTest, AfterASearcherStoppedTheNextPublisherOwesOneAgain) {
  search.add_idle();
  search.add_idle();
  ASSERT_TRUE(search.try_book_searcher());
  search.remove_idle();
  search.stop();
  EXPECT_TRUE(search.try_book_searcher());
  expect(1, 1);
}

TEST_F(SearchTest, AtMostHalfAsManySearchAsPsAreBusy) {
  EXPECT_TRUE(search.try_start(4));
  EXPECT_TRUE(search.try_start(4));
  EXPECT_FALSE(search.try_start(4));
  expect(2, 0);
}

TEST_F(SearchTest, IdlePsDoNotCountAsBusy) {
  search.add_idle();
  search.add_idle();
  EXPECT_TRUE(search.try_start(4));
  EXPECT_FALSE(search.try_start(4));
  expect(1, 2);
}

TEST_F(SearchTest, TheOnlyPMaySearch) { EXPECT_TRUE(search.try_start(1)); }

TEST_F(SearchTest, ASearcherThatRestsBecomesAnIdleP) {
  ASSERT_TRUE(search.try_start(2));
  search.rest(Search::Was::searching);
  expect(0, 1);
}

TEST_F(SearchTest, OneThatDidNotSearchRestsToo) {
  search.rest(Search::Was::not_searching);
  expect(0, 1);
}

TEST_F(SearchTest, ARestingPMayWakeAsASearcher) {
  search.rest(Search::Was::not_searching);
  search.remove_idle_add_searcher();
  expect(1, 0);
}

TEST_F(SearchTest, OfManyPublishersAtOnceOnlyOneOwesASearcher) {
  for (int round = 0; round < 200; ++round) {
    Search mine;
    for (int i = 0; i < 8; ++i) mine.add_idle();
    std::atomic<int> owing{0};
    std::vector<std::thread> publishers;
    for (int i = 0; i < 3; ++i) {
      publishers.emplace_back([&] { owing += mine.try_book_searcher() ? 1 : 0; });
    }
    for (std::thread& publisher : publishers) publisher.join();
    ASSERT_EQ(owing.load(), 1);
  }
}

// [search-or-sleep] on real threads: the publisher sees the idle P, or the sleeper sees the work.
TEST_F(SearchTest, EitherThePublisherSeesTheSleeperOrTheSleeperSeesTheWork) {
  for (int round = 0; round < 2000; ++round) {
    Search mine;
    std::atomic<int> work{0}, arrived{0};
    bool published_to_sleeper = false, seen_by_sleeper = false;
    auto meet = [&arrived] {
      arrived.fetch_add(1);
      while (arrived.load() < 2) std::this_thread::yield();
    };
    std::thread publisher([&] {
      meet();
      work.store(1, std::memory_order_relaxed);
      published_to_sleeper = mine.try_book_searcher();
    });
    meet();
    mine.rest(Search::Was::not_searching);
    mine.before_second_look();
    seen_by_sleeper = work.load(std::memory_order_relaxed) == 1;
    publisher.join();
    ASSERT_TRUE(published_to_sleeper || seen_by_sleeper) << "round " << round;
  }
}

}  // namespace
}  // namespace magpie::sched
