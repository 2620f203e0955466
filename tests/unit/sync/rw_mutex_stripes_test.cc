// rw_mutex_stripes_test.cc: readers that are counted in stripes. When the stripes open by
// themselves depends on how threads meet, so the tests open them.

#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <shared_mutex>

#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "sync/rw_mutex_core.h"

namespace magpie {
namespace {

using support::PlainThread;
using support::waiting_is;
using sync::RWStripe;
using sync::RWWord;

constexpr std::size_t kStripes = 4, kStripeBytes = 64;

// The word is the first member of an RWMutex, the stripes are the last ones.
RWWord::Word& word_of(RWMutex& mutex) { return reinterpret_cast<RWWord::Word&>(mutex); }
RWStripe::Word& stripe_of(RWMutex& mutex, std::size_t index) {
  auto* end = reinterpret_cast<std::byte*>(&mutex) + sizeof(RWMutex);
  return *reinterpret_cast<RWStripe::Word*>(end - (kStripes - index) * kStripeBytes);
}

bool is_striped(RWMutex& mutex) { return RWWord::is_striped(word_of(mutex).load(base::relaxed)); }

// Nobody uses the mutex meanwhile.
void open_stripes(RWMutex& mutex) {
  ASSERT_TRUE(RWWord::try_open(word_of(mutex)));
  for (std::size_t i = 0; i < kStripes; ++i) RWStripe::open(stripe_of(mutex, i));
}

RT_TEST(RWMutexStripes, AReaderThatCameByAStripeKeepsWritersOut) {
  RWMutex mutex;
  open_stripes(mutex);
  mutex.lock_shared();
  EXPECT_TRUE(is_striped(mutex));
  EXPECT_FALSE(mutex.try_lock());
  EXPECT_FALSE(is_striped(mutex));
  mutex.unlock_shared();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

RT_TEST(RWMutexStripes, AWriterGetsInWhileTheyCountNobody) {
  RWMutex mutex;
  open_stripes(mutex);
  EXPECT_TRUE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock_shared());
  mutex.unlock();
  open_stripes(mutex);
  mutex.lock();
  EXPECT_FALSE(mutex.try_lock_shared());
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock_shared());
  mutex.unlock_shared();
}

RT_TEST(RWMutexStripes, AReaderMayLeaveOnAnotherThreadThanItCame) {
  RWMutex mutex;
  open_stripes(mutex);
  mutex.lock_shared();
  PlainThread([&] { mutex.unlock_shared(); }).join();
  EXPECT_TRUE(is_striped(mutex));
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

RT_TEST(RWMutexStripes, AReaderMayComeByTheWordAndLeaveByAStripe) {
  RWMutex mutex;
  mutex.lock_shared();
  open_stripes(mutex);
  mutex.unlock_shared();
  EXPECT_TRUE(is_striped(mutex));
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

RT_TEST(RWMutexStripes, AWriterWaitsForAllReadersThatCameByStripes) {
  RWMutex mutex;
  open_stripes(mutex);
  mutex.lock_shared();
  PlainThread([&] { mutex.lock_shared(); }).join();
  std::atomic<bool> written{false};
  auto writer = spawn([&] {
    mutex.lock();
    written = true;
    mutex.unlock();
  });
  ASSERT_TRUE(waiting_is(1));
  EXPECT_FALSE(mutex.try_lock_shared());
  mutex.unlock_shared();
  for (int i = 0; i < 100; ++i) yield();
  EXPECT_FALSE(written);
  mutex.unlock_shared();
  writer.join();
  EXPECT_TRUE(written);
}

RT_TEST(RWMutexStripes, AReaderWithALimitComesByAStripe) {
  RWMutex mutex;
  open_stripes(mutex);
  Context context = Context::background();
  mutex.lock_shared(context);
  EXPECT_TRUE(mutex.try_lock_shared_for(std::chrono::seconds(1)));
  EXPECT_TRUE(is_striped(mutex));
  EXPECT_EQ(word_of(mutex).load(base::relaxed), RWWord::kStriped);
  mutex.unlock_shared();
  mutex.unlock_shared();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

RT_TEST(RWMutexStripes, WhileTheyOpenAndCloseReadersSeeWhatWritersWroteWhole) {
  RWMutex mutex;
  long first = 0, second = 0;
  std::atomic<long> torn{0};
  auto read_and_write = [&](int seed) {
    for (int i = 1; i <= 2000; ++i) {
      if ((i + seed) % 211 == 0) {
        mutex.lock();
        ++first;
        if (first != second + 1) ++torn;
        ++second;
        mutex.unlock();
      } else {
        mutex.lock_shared();
        if (first != second) ++torn;
        if (i % 7 == 0) yield();  // it may leave on another thread than it came
        mutex.unlock_shared();
      }
    }
  };
  WaitGroup all;
  all.add(6);
  for (int seed = 0; seed < 6; ++seed) {
    go([&, seed] {
      read_and_write(seed);
      all.done();
    });
  }
  PlainThread thread([&] { read_and_write(6); });
  all.wait();
  thread.join();
  EXPECT_EQ(torn, 0);
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

}  // namespace
}  // namespace magpie
