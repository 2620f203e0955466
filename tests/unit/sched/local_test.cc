// local_test.cc: a value of its own for every goroutine.

#include <magpie/magpie.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "support/plain_thread.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using support::eventually;
using support::PlainThread;

RT_TEST(Local, AValueBeginsAsTheInitialOne) {
  Local<int> number(7);
  Local<std::string> text;
  EXPECT_EQ(number.get(), 7);
  EXPECT_EQ(text.get(), "");
  spawn([&] { EXPECT_EQ(number.get(), 7); }).join();
}

RT_TEST(Local, EveryGoroutineHasItsOwn) {
  Local<std::uint64_t> own;
  WaitGroup all;
  for (int i = 0; i < 100; ++i) {
    all.go([&own] {
      own.set(goroutine_id());
      for (int round = 0; round < 20; ++round) {
        yield();  // maybe to another thread
        EXPECT_EQ(own.get(), goroutine_id());
      }
    });
  }
  all.wait();
  EXPECT_EQ(own.get(), 0u);
}

RT_TEST(Local, AGoroutineRunInPlaceDoesNotSeeItsJoinersValue) {
  Local<int> number;
  number.set(1);
  spawn([&] {
    EXPECT_EQ(number.get(), 0);
    number.set(2);
  }).join();
  EXPECT_EQ(number.get(), 1);
}

// Watched by ThreadSanitizer: the joiner looks at a goroutine that may run, and make its first
// value, at this moment.
RT_TEST(Local, AGoroutineMayMakeItsFirstValueWhileItIsBeingJoined) {
  Local<int> local;
  for (int i = 0; i < 2000; ++i) {
    auto handle = spawn([&local, i] {
      for (int k = 0; k < i % 40; ++k) yield();
      local.get() = 1;
    });
    for (int k = 0; k < i % 7; ++k) yield();
    handle.join();
  }
}

RT_TEST(Local, GetAndTheOperatorsNameTheSameObject) {
  Local<std::string> text;
  text.get() = "abc";
  text->push_back('d');
  *text += "e";
  EXPECT_EQ(text.get(), "abcde");
  EXPECT_EQ(&*text, &text.get());
}

RT_TEST(Local, OneGoroutineMayHaveMany) {
  std::vector<std::unique_ptr<Local<int>>> all;
  for (int i = 0; i < 50; ++i) all.push_back(std::make_unique<Local<int>>(-1));
  for (int i = 0; i < 50; ++i) all[static_cast<std::size_t>(i)]->set(i);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)]->get(), i);
}

RT_TEST(Local, ValuesAreDestroyedWhenTheGoroutineEnds) {
  Local<std::shared_ptr<int>> held;
  auto value = std::make_shared<int>(7);
  spawn([&] {
    held.set(value);
    EXPECT_EQ(value.use_count(), 2);
  }).join();
  EXPECT_EQ(value.use_count(), 1);
  go([&] { held.set(value); });
  EXPECT_TRUE(eventually([&] { return num_goroutines() == 1 && value.use_count() == 1; }));
}

RT_TEST(Local, SettingDestroysTheOldValue) {
  Local<std::shared_ptr<int>> held;
  auto value = std::make_shared<int>(7);
  held.set(value);
  held.set(nullptr);
  EXPECT_EQ(value.use_count(), 1);
}

RT_TEST(Local, TheDestructorOfAValueMayUseAnotherLocalAndYield) {
  static std::atomic<int> seen;
  static Local<int>* other;
  struct Last {
    bool armed = false;
    ~Last() {
      if (!armed) return;
      yield();
      seen = other->get();
    }
  };
  Local<int> number(3);
  other = &number;
  seen = 0;
  Local<Last> last;
  spawn([&] { last->armed = true; }).join();
  EXPECT_EQ(seen, 3);
}

RT_TEST(Local, APlainThreadHasItsOwnUntilItEnds) {
  Local<std::shared_ptr<int>> held;
  auto value = std::make_shared<int>(7);
  PlainThread thread([&] {
    EXPECT_EQ(held.get(), nullptr);
    held.set(value);
    EXPECT_EQ(held.get(), value);
  });
  thread.join();
  EXPECT_EQ(value.use_count(), 1);
  EXPECT_EQ(held.get(), nullptr);
}

RT_TEST(Local, AValueNeedsNoDefaultConstructor) {
  struct Number {
    explicit Number(int its) : value(its) {}
    int value;
  };
  Local<Number> copied(Number(7)), set;
  EXPECT_EQ(copied->value, 7);
  EXPECT_THROW(set.get(), std::logic_error);
  set.set(Number(8));
  EXPECT_EQ(set->value, 8);
}

}  // namespace
}  // namespace magpie
