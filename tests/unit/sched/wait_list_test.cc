// wait_list_test.cc: waiters in line, and what is left of them when their run() has ended.

#include "sched/wait_list.h"

#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <cstring>
#include <thread>
#include <vector>

namespace magpie::sched {
namespace {

// Stands for a stack that is gone: following one of its links would crash.
void scribble(WaitRecord& record) { std::memset(static_cast<void*>(&record), 0xAB, sizeof record); }

std::vector<WaitRecord*> drain(WaitList& list) {
  std::vector<WaitRecord*> all;
  all.reserve(100);  // not inside the runtime
  Presence presence;
  while (WaitRecord* record = list.first(presence)) {
    all.push_back(record);
    list.unlink(*record);
  }
  return all;
}

using Records = std::vector<WaitRecord*>;

TEST(WaitList, WaitersLeaveInTheOrderInWhichTheyCame) {
  WaitList list;
  WaitRecord a, b, c;
  EXPECT_TRUE(list.looks_empty());
  for (WaitRecord* record : {&a, &b, &c}) list.push(*record, Presence());
  EXPECT_FALSE(list.looks_empty());
  EXPECT_EQ(drain(list), (Records{&a, &b, &c}));
  EXPECT_TRUE(list.looks_empty());
}

TEST(WaitList, OneWhoComesBackToTheFrontLeavesFirst) {
  WaitList list;
  WaitRecord first, second, thread, goroutine;
  list.push_front(second, Presence());
  list.push_front(first, Presence());
  EXPECT_EQ(drain(list), (Records{&first, &second}));
  list.push(thread, Presence());
  run([&] {
    list.push(goroutine, Presence());
    list.push_front(first, Presence());
    EXPECT_EQ(drain(list), (Records{&first, &thread, &goroutine}));
  });
}

TEST(WaitList, ThreadsAtTheFrontStayInLineWhenGoroutinesAreForgotten) {
  WaitList list;
  WaitRecord gone, threads[2];
  list.push(threads[1], Presence());
  run([&] { list.push(gone, Presence()); });
  scribble(gone);
  list.push_front(threads[0], Presence());
  EXPECT_EQ(drain(list), (Records{&threads[0], &threads[1]}));
}

TEST(WaitList, AListKnowsWhoIsOnIt) {
  WaitList list;
  WaitRecord record;
  EXPECT_FALSE(list.holds(record, Presence()));
  list.push(record, Presence());
  EXPECT_TRUE(list.holds(record, Presence()));
  list.unlink(record);
  EXPECT_FALSE(list.holds(record, Presence()));
}

TEST(WaitList, AnyoneMayBeTakenOut) {
  for (int out = 0; out < 3; ++out) {
    WaitList list;
    WaitRecord records[3];
    for (WaitRecord& record : records) list.push(record, Presence());
    list.unlink(records[out], Presence());
    list.unlink(records[out], Presence());  // the second time it is nothing
    Records rest;
    for (int i = 0; i < 3; ++i) {
      if (i != out) rest.push_back(&records[i]);
    }
    EXPECT_EQ(drain(list), rest);
  }
}

TEST(WaitList, TheFirstIsTakenOffAndTheOthersStayInLine) {
  WaitList list;
  WaitRecord thread, goroutine, late;
  list.push(thread, Presence());
  run([&] {
    list.push(goroutine, Presence());
    EXPECT_EQ(list.take_first(Presence()), &thread);
    EXPECT_FALSE(list.holds(thread, Presence()));
    EXPECT_EQ(list.take_first(Presence()), &goroutine);
    EXPECT_EQ(list.take_first(Presence()), nullptr);
    EXPECT_TRUE(list.looks_empty());
    list.push(goroutine, Presence());
    list.push(late, Presence());
  });
  scribble(goroutine);
  scribble(late);
  EXPECT_EQ(list.take_first(Presence()), nullptr);
  list.push(thread, Presence());
  EXPECT_EQ(list.take_first(Presence()), &thread);
}

TEST(WaitList, GoroutinesOfAnEarlierRunAreForgottenWithoutBeingTouched) {
  WaitList list;
  WaitRecord gone[2];
  run([&] {
    for (WaitRecord& record : gone) list.push(record, Presence());
  });
  for (WaitRecord& record : gone) scribble(record);
  WaitRecord thread;
  list.push(thread, Presence());
  EXPECT_EQ(drain(list), Records{&thread});
}

TEST(WaitList, ThreadsStayInLineWhenGoroutinesAreForgotten) {
  WaitList list;
  WaitRecord threads[3], gone[3];
  list.push(threads[0], Presence());
  run([&] {
    // The first goroutine of this run() forgets those of an earlier one, of which there are none.
    for (int i = 0; i < 3; ++i) list.push(gone[i], Presence());
  });
  EXPECT_FALSE(list.looks_empty());
  for (WaitRecord& record : gone) scribble(record);
  list.push(threads[1], Presence());
  list.push(threads[2], Presence());
  list.unlink(threads[1], Presence());
  run([&] { EXPECT_EQ(drain(list), (Records{&threads[0], &threads[2]})); });
}

TEST(WaitList, TheNextRunsGoroutinesForgetThoseOfTheOneBefore) {
  WaitList list;
  WaitRecord gone, here;
  run([&] { list.push(gone, Presence()); });
  scribble(gone);
  run([&] {
    list.push(here, Presence());
    EXPECT_EQ(drain(list), Records{&here});
  });
}

TEST(WaitList, AThreadMayBeTakenOutFromAmongGoroutinesOfAnEarlierRun) {
  WaitList list;
  WaitRecord before, thread, after;
  run([&] {
    list.push(before, Presence());
    std::thread([&] { list.push(thread, Presence()); }).join();
    list.push(after, Presence());
  });
  scribble(before);
  scribble(after);
  list.unlink(thread, Presence());
  EXPECT_TRUE(list.looks_empty());
}

TEST(WaitList, AForgottenRecordMayBeTakenOutInVain) {
  WaitList list;
  WaitRecord forgotten, thread;
  run([&] { list.push(forgotten, Presence()); });
  list.push(thread, Presence());
  list.unlink(forgotten, Presence());
  EXPECT_EQ(drain(list), Records{&thread});
}

}  // namespace
}  // namespace magpie::sched
