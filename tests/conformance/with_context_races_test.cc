// with_context_races_test.cc: calls with a context that is cancelled just as they are served.
#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>
#include <vector>

#include "support/at_procs.h"
#include "support/cancellable.h"
#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::all_cancellable;
using support::Cancellable;
using support::cancellable;
using support::eventually;
using support::expect_granted;
using support::kCancelled;
using support::kTimedOut;
using support::PlainThread;

// Calls, grants and cancels at the same moment, again and again: each grant lets one call through.
void race(const Cancellable& operation, int rounds) {
  Chan<Context> to_cancel, to_grant;
  WaitGroup others;
  others.go([=] {
    for (Context& context : to_cancel) context.cancel();
  });
  others.go([=, grant = operation.grant] {
    for ([[maybe_unused]] Context& context : to_grant) grant();
  });
  for (int i = 0; i < rounds; ++i) {
    Context context = cancellable();
    to_cancel.send(context);
    to_grant.send(context);
    std::error_code error;
    bool done = operation.call(context, error);
    EXPECT_EQ(done, !error) << operation.name;
    if (done) {
      operation.undo();
    } else {
      EXPECT_EQ(error, kCancelled) << operation.name;
      expect_granted(operation);
    }
  }
  to_cancel.close();
  to_grant.close();
  others.wait();
}

class WithContextRaces : public support::AtProcs {};
INSTANTIATE_TEST_SUITE_P(AtProcs, WithContextRaces, support::kFewProcs,
                         testing::PrintToStringParamName());

TEST_P(WithContextRaces, ACallIsServedOrCancelledAndNeverBothNorNeither) {
  run(Options{.procs = procs()}, [] {
    for (const Cancellable& operation : all_cancellable()) race(operation, support::scaled(400));
  });
}

TEST_P(WithContextRaces, TheSameFromAPlainThread) {
  run(Options{.procs = procs()}, [] {
    for (const Cancellable& operation : all_cancellable()) {
      PlainThread thread([&] { race(operation, support::scaled(100)); });
      thread.join();
    }
  });
}

TEST_P(WithContextRaces, ManyWaitersOfManyContextsTakeEachUnitOnce) {
  run(Options{.procs = procs()}, [] {
    Semaphore units(0);
    std::atomic<int> taken{0};
    const int rounds = support::scaled(50);
    for (int i = 0; i < rounds; ++i) {
      Context left = cancellable(), right = cancellable();
      WaitGroup waiters;
      taken = 0;
      for (int each = 0; each < 20; ++each) {
        waiters.go([&, context = each % 2 == 0 ? left : right] {
          std::error_code error;
          if (units.acquire(context, error)) taken.fetch_add(1);
        });
      }
      waiters.go([&] { left.cancel(); });
      waiters.go([&] { units.release(10); });
      waiters.go([&] {
        if (!eventually([&] { return taken.load() >= 10; }, 1ms)) right.cancel();
        right.cancel();
      });
      waiters.wait();
      int left_over = 0;
      while (units.try_acquire()) ++left_over;
      EXPECT_EQ(taken.load() + left_over, 10);
    }
  });
}

TEST_P(WithContextRaces, AMutexIsHeldByOneAtATimeWhileOthersGiveUp) {
  run(Options{.procs = procs()}, [] {
    Mutex mutex;
    RWMutex rw_mutex;
    int guarded = 0, guarded_too = 0;
    std::atomic<int> locked{0}, locked_too{0};
    WaitGroup all;
    const int rounds = support::scaled(300);
    for (int each = 0; each < 8; ++each) {
      all.go([&, each] {
        for (int i = 0; i < rounds; ++i) {
          Context context = cancellable();
          JoinHandle<void> canceller = spawn([&] { context.cancel(); });
          std::error_code error;
          if (mutex.lock(context, error)) {
            ++guarded;
            locked.fetch_add(1);
            if (i % 8 == 0) yield();
            mutex.unlock();
          }
          if (each % 2 == 0 ? rw_mutex.lock(context, error)
                            : rw_mutex.lock_shared(context, error)) {
            if (each % 2 == 0) {
              ++guarded_too;
              locked_too.fetch_add(1);
            }
            if (i % 8 == 0) yield();
            each % 2 == 0 ? rw_mutex.unlock() : rw_mutex.unlock_shared();
          }
          canceller.join();
          // Without a context too.
          rw_mutex.lock_shared();
          rw_mutex.unlock_shared();
        }
      });
    }
    all.wait();
    EXPECT_EQ(guarded, locked.load());
    EXPECT_EQ(guarded_too, locked_too.load());
    EXPECT_TRUE(mutex.try_lock());
    EXPECT_TRUE(rw_mutex.try_lock());  // nobody is counted any more
  });
}

TEST_P(WithContextRaces, ASleepEndsOnceAlsoWhenTimeIsUpAtTheSameMoment) {
  run(Options{.procs = procs()}, [] {
    const int rounds = support::scaled(400);
    for (int i = 0; i < rounds; ++i) {
      Context context = cancellable();
      auto until = std::chrono::steady_clock::now() + 50us;
      auto canceller = spawn([&] {
        sleep_until(until);
        context.cancel();
      });
      std::error_code error;
      bool slept = sleep_until(until, context, error);
      EXPECT_EQ(slept, !error);
      canceller.join();
    }
  });
}

// The context's timer cancels it, and each thread looks at the time itself.
TEST_P(WithContextRaces, AJoinEndsOnceAlsoWhenTwoNoticeItsDeadline) {
  run(Options{.procs = procs()}, [] {
    constexpr int kThreads = 20;
    std::vector<JoinHandle<void>> endless;
    for (int i = 0; i < kThreads; ++i) endless.push_back(spawn([] { sleep_for(24h); }));
    const int rounds = support::scaled(40);
    for (int round = 0; round < rounds; ++round) {
      Context context = Context::background().with_timeout(2ms);
      std::atomic<int> timed_out{0};
      WaitGroup group;
      group.add(kThreads);
      std::vector<std::thread> threads;
      for (auto& one : endless) {
        threads.emplace_back([&] {
          std::error_code error;
          if (!one.join(context, error) && error == kTimedOut) timed_out.fetch_add(1);
          group.done();
        });
      }
      group.wait();
      for (std::thread& thread : threads) thread.join();
      EXPECT_EQ(timed_out.load(), kThreads);
    }
    for (auto& one : endless) one.detach();
  });
}

}  // namespace
}  // namespace magpie
