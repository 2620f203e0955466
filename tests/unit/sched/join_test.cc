// join_test.cc: the two words by which a goroutine's end, its joiner and its queue entry agree.

#include "sched/core/join_word.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace magpie::sched {
namespace {

TEST(JoinWord, AGoroutineThatEndsFirstOwesNothingAndItsJoinerDoesNotSleep) {
  JoinWord word;
  void* waiter = nullptr;
  EXPECT_FALSE(word.is_done());
  EXPECT_EQ(word.finish(waiter), JoinWord::Owes::nothing);
  EXPECT_TRUE(word.is_done());
  EXPECT_FALSE(word.commit(&word));
}

TEST(JoinWord, AGoroutineThatEndsWakesItsJoiner) {
  JoinWord word;
  int joiner = 0;
  ASSERT_TRUE(word.commit(&joiner));
  EXPECT_FALSE(word.is_done());
  void* waiter = nullptr;
  EXPECT_EQ(word.finish(waiter), JoinWord::Owes::wake_waiter);
  EXPECT_EQ(waiter, &joiner);
  EXPECT_TRUE(word.is_done());
}

TEST(JoinWord, AJoinerIsWithdrawnOnceAndTheSecondWhoTriesIsToldSo) {
  JoinWord word;
  WithdrawnMark mark;
  EXPECT_EQ(word.withdraw(&word, mark), JoinWord::Withdrawn::not_yet);
  ASSERT_TRUE(word.commit(&word));
  EXPECT_EQ(word.withdraw(&word, mark), JoinWord::Withdrawn::yes);
  EXPECT_EQ(word.withdraw(&word, mark), JoinWord::Withdrawn::no_woken);
}

TEST(JoinWord, ADetachedGoroutineFreesItsOwnRecord) {
  JoinWord word;
  ASSERT_TRUE(word.detach());
  void* waiter = nullptr;
  EXPECT_EQ(word.finish(waiter), JoinWord::Owes::free_record);
}

TEST(JoinWord, WhoDetachesAGoroutineThatHasEndedFreesTheRecord) {
  JoinWord word;
  void* waiter = nullptr;
  ASSERT_EQ(word.finish(waiter), JoinWord::Owes::nothing);
  EXPECT_FALSE(word.detach());
}

TEST(JoinWord, AResetWordIsOpenAgain) {
  JoinWord word;
  void* waiter = nullptr;
  ASSERT_EQ(word.finish(waiter), JoinWord::Owes::nothing);
  word.reset();
  EXPECT_FALSE(word.is_done());
  EXPECT_TRUE(word.detach());
}

// Runs `first` and `second` on two threads at the same time.
template <class First, class Second>
void race(First first, Second second) {
  std::atomic<int> arrived{0};
  auto meet = [&arrived] {
    arrived.fetch_add(1);
    while (arrived.load() < 2) std::this_thread::yield();
  };
  std::thread other([&] {
    meet();
    second();
  });
  meet();
  first();
  other.join();
}

TEST(JoinWord, EitherTheJoinerDoesNotSleepOrTheFinisherWakesIt) {
  for (int round = 0; round < 1000; ++round) {
    JoinWord word;
    bool sleeps = false;
    void* waiter = nullptr;
    auto owes = JoinWord::Owes::nothing;
    race([&] { sleeps = word.commit(&word); }, [&] { owes = word.finish(waiter); });
    ASSERT_EQ(sleeps, owes == JoinWord::Owes::wake_waiter);
  }
}

TEST(JoinWord, ExactlyOneOfFinisherAndDetacherFreesTheRecord) {
  for (int round = 0; round < 1000; ++round) {
    JoinWord word;
    bool detacher_frees = false;
    void* waiter = nullptr;
    auto owes = JoinWord::Owes::nothing;
    race([&] { detacher_frees = !word.detach(); }, [&] { owes = word.finish(waiter); });
    ASSERT_NE(detacher_frees, owes == JoinWord::Owes::free_record);
  }
}

TEST(ClaimWord, AnEntryThatNobodyClaimedIsRunEachTimeItIsMet) {
  ClaimWord word;
  EXPECT_EQ(word.meet_entry(), ClaimWord::Fate::run);
  EXPECT_EQ(word.meet_entry(), ClaimWord::Fate::run);  // it blocked, and was readied
  EXPECT_FALSE(word.is_left_behind());
  EXPECT_TRUE(word.retire());
}

TEST(ClaimWord, AGoroutineThatWasTakenCannotBeClaimed) {
  ClaimWord word;
  ASSERT_EQ(word.meet_entry(), ClaimWord::Fate::run);
  EXPECT_FALSE(word.claim());
}

TEST(ClaimWord, AGoroutineIsClaimedOnce) {
  ClaimWord word;
  EXPECT_TRUE(word.claim());
  EXPECT_FALSE(word.claim());
}

TEST(ClaimWord, TheEntryOfAClaimedGoroutineIsDroppedAndThenTheJoinerFreesTheRecord) {
  ClaimWord word;
  ASSERT_TRUE(word.claim());
  EXPECT_TRUE(word.is_left_behind());
  EXPECT_EQ(word.meet_entry(), ClaimWord::Fate::drop);
  EXPECT_FALSE(word.is_left_behind());
  EXPECT_TRUE(word.retire());
}

TEST(ClaimWord, WhoMeetsTheEntryAfterTheJoinerIsThroughFreesTheRecord) {
  ClaimWord word;
  ASSERT_TRUE(word.claim());
  EXPECT_FALSE(word.retire());
  EXPECT_TRUE(word.is_left_behind());
  EXPECT_EQ(word.meet_entry(), ClaimWord::Fate::free_record);
}

TEST(ClaimWord, OfTheTwoEntriesOfAClaimedGoroutineThatBlockedTheFirstMetIsDroppedTheSecondRuns) {
  ClaimWord word;
  ASSERT_TRUE(word.claim());
  EXPECT_EQ(word.meet_entry(), ClaimWord::Fate::drop);
  EXPECT_EQ(word.meet_entry(), ClaimWord::Fate::run);
  EXPECT_EQ(word.meet_entry(), ClaimWord::Fate::run);  // it blocked again
  EXPECT_TRUE(word.retire());
}

TEST(ClaimWord, AGoroutineWhoseOnlyEntryTheJoinerRemovedLeavesNothingBehind) {
  ClaimWord word;
  word.take_removed();
  EXPECT_FALSE(word.is_left_behind());
  EXPECT_TRUE(word.retire());
}

TEST(ClaimWord, ExactlyOneOfJoinerAndDequeuerRunsIt) {
  for (int round = 0; round < 1000; ++round) {
    ClaimWord word;
    bool claimed = false;
    auto entry = ClaimWord::Fate::run;
    race([&] { claimed = word.claim(); }, [&] { entry = word.meet_entry(); });
    ASSERT_NE(claimed, entry == ClaimWord::Fate::run);
  }
}

TEST(ClaimWord, ExactlyOneOfJoinerAndDequeuerFreesTheRecord) {
  for (int round = 0; round < 1000; ++round) {
    ClaimWord word;
    ASSERT_TRUE(word.claim());
    bool joiner_frees = false;
    auto entry = ClaimWord::Fate::run;
    race([&] { joiner_frees = word.retire(); }, [&] { entry = word.meet_entry(); });
    ASSERT_NE(joiner_frees, entry == ClaimWord::Fate::free_record);
    ASSERT_NE(entry, ClaimWord::Fate::run);
  }
}

}  // namespace
}  // namespace magpie::sched
