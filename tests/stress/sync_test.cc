// sync_test.cc: locks under load: exact counts, kept limits, nobody left behind.

#include <magpie/magpie.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <shared_mutex>
#include <thread>

#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::eventually;
using support::PlainThread;
using support::scaled;

RT_TEST(SyncStress, AMutexSharedByGoroutinesAndThreadsCountsExactly) {
  Mutex mutex;
  long count = 0;
  const int rounds = scaled(50'000);
  auto lock_often = [&] {
    for (int n = 0; n < rounds; ++n) {
      std::lock_guard hold(mutex);
      ++count;
    }
  };
  std::array<std::optional<PlainThread>, 2> threads;
  for (auto& thread : threads) thread.emplace(lock_often);
  WaitGroup all;
  for (int i = 0; i < 8; ++i) all.go(lock_often);
  all.wait();
  for (auto& thread : threads) thread->join();
  EXPECT_EQ(count, 10L * rounds);
}

// Each of them holds it over a yield, so that everybody else finds it taken.
RT_TEST(SyncStress, NobodyStarvesAtAMutex) {
  constexpr int kGoroutines = 8;
  const int enough = scaled(200) + 4;
  Mutex mutex;
  std::array<std::atomic<int>, kGoroutines> turns{};
  std::atomic<bool> over{false};
  WaitGroup all;
  for (int i = 0; i < kGoroutines; ++i) {
    all.go([&, i] {
      while (!over) {
        std::lock_guard hold(mutex);
        ++turns[static_cast<std::size_t>(i)];
        yield();
      }
    });
  }
  PlainThread thread([&] {
    for (int n = 0; n < enough; ++n)
      std::lock_guard hold(mutex);  // a thread does not starve either
  });
  EXPECT_TRUE(eventually([&] {
    return std::all_of(turns.begin(), turns.end(), [&](auto& mine) { return mine >= enough; });
  }));
  thread.join();
  over = true;
  all.wait();
}

RT_TEST(SyncStress, ReadersAndWritersKeepTheirPromises) {
  RWMutex mutex;
  std::array<int, 16> values{};
  std::atomic<int> readers{0}, writes{0};
  const int rounds = scaled(5000);
  WaitGroup all;
  auto write = [&](int n) {
    std::lock_guard hold(mutex);
    EXPECT_EQ(readers, 0);
    ++writes;
    for (int& value : values) {
      ++value;
      if (n % 64 == 0) yield();
    }
  };
  auto read = [&](int n) {
    std::shared_lock hold(mutex);
    ++readers;
    for (int value : values) EXPECT_EQ(value, values[0]);
    if (n % 16 == 0) yield();
    --readers;
  };
  for (int i = 0; i < 8; ++i) {
    all.go([&, i] {
      for (int n = 0; n < rounds; ++n) (n + i) % 8 == 0 ? write(n) : read(n);
    });
  }
  PlainThread thread([&] {
    for (int n = 1; n <= rounds; ++n) n % 4 == 0 ? write(1) : read(1);
  });
  all.wait();
  thread.join();
  EXPECT_EQ(values[0], writes);
}

// A queue of a few places, as it is written with a mutex and two condition variables.
class BoundedQueue {
 public:
  void push(int value) {
    std::unique_lock hold(mutex_);
    not_full_.wait(hold, [&] { return values_.size() < kPlaces; });
    values_.push_back(value);
    not_empty_.notify_one();
  }
  int pop() {
    std::unique_lock hold(mutex_);
    // Some wait in small portions, so that time limits and notifications meet.
    if (++pops_ % 3 == 0) {
      while (!not_empty_.wait_for(hold, 20us, [&] { return !values_.empty(); })) {
      }
    } else {
      not_empty_.wait(hold, [&] { return !values_.empty(); });
    }
    int value = values_.front();
    values_.pop_front();
    not_full_.notify_one();
    return value;
  }

 private:
  static constexpr std::size_t kPlaces = 4;
  Mutex mutex_;
  CondVar not_full_, not_empty_;
  std::deque<int> values_;
  int pops_ = 0;
};

RT_TEST(SyncStress, ABoundedQueueOfConditionVariablesLosesNothing) {
  BoundedQueue queue;
  const int each = scaled(4000);
  std::atomic<long> sum{0};
  WaitGroup all;
  for (int i = 0; i < 4; ++i) {
    all.go([&] {
      for (int n = 1; n <= each; ++n) queue.push(n);
    });
    all.go([&] {
      for (int n = 1; n <= each; ++n) sum += queue.pop();
    });
  }
  PlainThread producer([&] {
    for (int n = 1; n <= each / 4; ++n) queue.push(n);
  });
  PlainThread consumer([&] {
    for (int n = 1; n <= each / 4; ++n) sum += queue.pop();
  });
  all.wait();
  producer.join();
  consumer.join();
  const long quarter = each / 4;
  EXPECT_EQ(sum, 4L * each * (each + 1) / 2 + quarter * (quarter + 1) / 2);
}

RT_TEST(SyncStress, ASemaphoreKeepsItsLimitForRequestsOfAllSizes) {
  constexpr int kLimit = 5;
  Semaphore semaphore(kLimit);
  std::atomic<int> inside{0};
  auto use = [&](unsigned seed) {
    std::minstd_rand random(seed + 1);
    for (int n = 0; n < scaled(3000); ++n) {
      const int units = 1 + static_cast<int>(random() % kLimit);
      if (n % 4 == 0) {
        if (!semaphore.try_acquire_for(10us, units)) continue;
      } else {
        semaphore.acquire(units);
      }
      EXPECT_LE(inside += units, kLimit);
      if (n % 8 == 0) yield();
      inside -= units;
      semaphore.release(units);
    }
  };
  WaitGroup all;
  for (unsigned i = 0; i < 8; ++i) all.go([&, i] { use(i); });
  PlainThread thread([&] { use(99); });
  all.wait();
  thread.join();
  EXPECT_TRUE(semaphore.try_acquire(kLimit));
  EXPECT_FALSE(semaphore.try_acquire());
}

// Everything lives on when run() ends, and drops those who wait, while a thread goes on waking
// them.
TEST(SyncStress, LocksOutliveManyRunsWhileAThreadUsesThem) {
  Mutex mutex;
  RWMutex rw_mutex;
  CondVar changed;
  Semaphore semaphore(0);
  WaitGroup group;
  std::atomic<bool> over{false};
  std::thread waker([&] {
    while (!over) {
      changed.notify_one();
      semaphore.release();
      group.add(1);
      group.done();
      changed.notify_all();
      std::this_thread::yield();
    }
  });
  for (int round = 0; round < scaled(300); ++round) {
    run(Options{.procs = 1 + round % 3}, [&] {
      mutex.lock();
      for (int i = 0; i < 4; ++i) {
        go([&] {
          for (;;) group.wait(), yield();
        });
        go([&] {
          for (;;) semaphore.acquire(2);
        });
        go([&] {
          std::unique_lock hold(rw_mutex);
          for (;;) {
            if (changed.wait_for(hold, 50us) == std::cv_status::no_timeout) yield();
          }
        });
        go([&] { mutex.lock(); });
      }
      for (int i = 0; i < 20; ++i) yield();
      mutex.unlock();  // to one that may be dropped with it
    });
    // Dropped goroutines may hold these two: new ones for the next round.
    mutex.~Mutex();
    new (&mutex) Mutex;
    rw_mutex.~RWMutex();
    new (&rw_mutex) RWMutex;
  }
  over = true;
  waker.join();
}

}  // namespace
}  // namespace magpie
