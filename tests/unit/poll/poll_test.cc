#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <set>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "poll/poller.h"
#include "poll/slot.h"

namespace magpie::poll {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

TEST(SlotTable, GivesEachSlotOnceAndTakesThemBack) {
  SlotTable table;
  std::set<Slot*> all;
  for (int i = 0; i < 3000; ++i) all.insert(table.take());  // several chunks
  EXPECT_EQ(all.size(), 3000u);
  Slot* one = *all.begin();
  table.give(one);
  EXPECT_EQ(table.take(), one);
}

TEST(SlotTable, AnEventOfAFormerOwnerFindsNoSlot) {
  SlotTable table;
  Slot* slot = table.take();
  Tag before = Tag::of(*slot);
  EXPECT_EQ(table.find(before), slot);
  table.give(slot);
  EXPECT_EQ(table.find(before), nullptr);
  EXPECT_EQ(table.take(), slot);
  EXPECT_EQ(table.find(before), nullptr);
  EXPECT_EQ(table.find(Tag::of(*slot)), slot);
  EXPECT_EQ(table.find({.index = 999, .generation = 0}), nullptr);
}

TEST(SlotTable, ASlotThatIsTakenAgainKnowsNothing) {
  SlotTable table;
  Slot* slot = table.take();
  EXPECT_EQ(slot->read.set(), nullptr);
  slot->always_try.store(true, base::relaxed);
  table.give(slot);
  ASSERT_EQ(table.take(), slot);
  EXPECT_FALSE(slot->read.is_ready());
  EXPECT_FALSE(slot->always_try.load(base::relaxed));
}

TEST(Readiness, WhoWaitsIsHandedToWhoeverSetsIt) {
  Readiness word;
  int record;
  ASSERT_TRUE(word.begin_wait(&record));
  EXPECT_TRUE(word.somebody_waits());
  EXPECT_EQ(word.set(), &record);
  EXPECT_EQ(word.set(), nullptr);
  EXPECT_FALSE(word.begin_wait(&record));  // something happened
  EXPECT_TRUE(word.forget());
  EXPECT_FALSE(word.forget());
  EXPECT_TRUE(word.begin_wait(&record));
}

class PollerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(poller_.open(), 0);
    ASSERT_EQ(pipe(ends_.data()), 0);
  }
  void TearDown() override {
    for (int end : ends_) close(end);
  }
  std::vector<Tag> wait(std::int64_t until_ns) {
    std::array<epoll_event, 8> events;
    std::vector<Tag> tags;
    std::size_t count = poller_.wait(events, until_ns);
    for (std::size_t i = 0; i < count; ++i) tags.push_back(Tag::of(events[i].data.u64));
    return tags;
  }
  Poller poller_;
  std::array<int, 2> ends_{};
};

TEST_F(PollerTest, TellsOnceThatSomethingCame) {
  ASSERT_EQ(poller_.add(ends_[0], Tag{.index = 7, .generation = 3}), 0);
  EXPECT_TRUE(wait(Poller::kAtOnce).empty());
  ASSERT_EQ(write(ends_[1], "x", 1), 1);
  std::vector<Tag> tags = wait(Poller::kAtOnce);
  ASSERT_EQ(tags.size(), 1u);
  EXPECT_EQ(tags[0].index, 7u);
  EXPECT_EQ(tags[0].generation, 3u);
  EXPECT_TRUE(wait(Poller::kAtOnce).empty());
  poller_.remove(ends_[0]);
  ASSERT_EQ(write(ends_[1], "x", 1), 1);
  EXPECT_TRUE(wait(Poller::kAtOnce).empty());
}

TEST_F(PollerTest, WaitsNotLessThanItWasTold) {
  for (std::int64_t ns : {100'000L, 3 * kMillisecond}) {
    std::int64_t until = base::now_ns() + ns;
    EXPECT_TRUE(wait(until).empty());
    EXPECT_GE(base::now_ns(), until);
  }
}

TEST_F(PollerTest, AnInterruptionEndsAWaitAndOnlyOne) {
  std::thread interrupter([&] {
    for (int i = 0; i < 3; ++i) poller_.interrupt();
  });
  EXPECT_TRUE(wait(std::numeric_limits<std::int64_t>::max()).empty());
  interrupter.join();
  // What is left of the three, if anything, ends one more at most.
  (void)wait(base::now_ns() + kMillisecond);
  std::int64_t until = base::now_ns() + kMillisecond;
  EXPECT_TRUE(wait(until).empty());
  EXPECT_GE(base::now_ns(), until);
  poller_.interrupt();                         // before the wait
  EXPECT_TRUE(wait(Poller::kAtOnce).empty());  // does not take it
  EXPECT_TRUE(wait(std::numeric_limits<std::int64_t>::max()).empty());
}

TEST_F(PollerTest, SaysWhatItCannotWatch) {
  EXPECT_EQ(poller_.add(-1, Tag{}), EBADF);
  ASSERT_EQ(poller_.add(ends_[0], Tag{}), 0);
  EXPECT_EQ(poller_.add(ends_[0], Tag{}), EEXIST);
}

// From now on this process gets EPERM for that system call, as in sandboxes that do not know it.
bool forbid(unsigned system_call) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, system_call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{static_cast<unsigned short>(std::size(rules)), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

constexpr int kCannotForbid = 3;

[[noreturn]] void wait_without_pwait2() {
  if (!forbid(SYS_epoll_pwait2)) std::_Exit(kCannotForbid);
  Poller poller;
  if (poller.open() != 0) std::_Exit(1);
  std::array<epoll_event, 8> events;
  const std::int64_t until = base::now_ns() + 20 * kMillisecond;
  if (poller.wait(events, until) != 0) std::_Exit(1);
  std::_Exit(base::now_ns() >= until ? 0 : 2);
}

bool exited_well(int status) {
  return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kCannotForbid);
}

TEST(Poller, WhereWaitsWithShortTimeoutsAreForbiddenItStillSleepsUntilTheTime) {
  EXPECT_EXIT(wait_without_pwait2(), exited_well, "");
}

}  // namespace
}  // namespace magpie::poll
