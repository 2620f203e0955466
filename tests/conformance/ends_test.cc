// ends_test.cc: run() returns, whatever goroutines do at that moment, and leaves nothing locked.

#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "sched/current.h"
#include "sched/run/runtime.h"
#include "support/let_signals_in.h"
#include "support/os_faults.h"
#include "support/rt_test.h"
#include "support/sleeping_thread.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::let_signals_in;
using support::spin_until;

// Computes outside the runtime for about as long as main needs to return.
void compute(std::chrono::microseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) let_signals_in();
}

// A goroutine with a ThreadLock computes, and then waits, again and again. Main returns at any
// time.
template <class Wait, class Main>
void end_while_bound_goroutine_waits(Wait wait, Main main) {
  run(Options{.procs = 2}, [&] {
    go([wait] {
      ThreadLock lock;
      for (;;) {
        compute(200us);
        wait();
      }
    });
    main();
  });
}

constexpr int kRounds = 60;

// A handle on the stack of a goroutine that is dropped is never given back, and its channel
// neither. This keeps the channel in sight of leak checkers.
Chan<int> new_channel() {
  static auto* kept = new std::vector<Chan<int>>;
  return kept->emplace_back();
}

TEST(Ends, AGoroutineWithAThreadLockThatSleepsReleasesItsTimers) {
  for (int i = 0; i < kRounds; ++i)
    end_while_bound_goroutine_waits([] { sleep_for(1us); }, [] { sleep_for(2ms); });
}

TEST(Ends, AGoroutineWithAThreadLockThatReceivesReleasesItsChannel) {
  for (int i = 0; i < kRounds; ++i) {
    Chan<int> channel = new_channel();
    end_while_bound_goroutine_waits([channel] { (void)channel.recv(); },
                                    [channel] {
                                      for (int k = 0; k < 4; ++k) channel.send(k);
                                    });
    EXPECT_FALSE(channel.try_send(1));  // would block for ever if the lock were left held
  }
}

TEST(Ends, AGoroutineWithAThreadLockInASelectReleasesItsChannels) {
  for (int i = 0; i < kRounds; ++i) {
    Chan<int> one = new_channel(), other = new_channel();
    end_while_bound_goroutine_waits(
        [one, other] {
          select(on_recv(one, [](auto) {}), on_recv(other, [](auto) {}), on_timeout(1h, [] {}));
        },
        [one] {
          for (int k = 0; k < 4; ++k) one.send(k);
        });
    EXPECT_FALSE(one.try_send(1));
    EXPECT_FALSE(other.try_send(1));
  }
}

TEST(Ends, AGoroutineWithAThreadLockThatNeverWaitedIsLeftBehind) {
  for (int i = 0; i < 5; ++i) {
    std::atomic<bool> begun{false}, over{false};
    run(Options{.procs = 2}, [&] {
      go([&] {
        ThreadLock lock;
        begun = true;
        while (!over) std::this_thread::sleep_for(1ms);
        yield();
      });
      while (!begun) yield();
      over = true;
    });
  }
}

TEST(Ends, StoppedGoroutinesThatWaitForTheirTurnAreLeftBehind) {
  for (int i = 0; i < kRounds; ++i) {
    static std::atomic<bool> over{false};
    over = false;
    run(Options{.procs = 2, .time_slice = 200us}, [] {
      // More loops than Ps, which enter the runtime now and then; main has its turns in between.
      for (int k = 0; k < 6; ++k) {
        go([] {
          while (!over) {
            compute(300us);
            yield();
          }
        });
      }
      for (int k = 0; k < 4; ++k) sleep_for(500us);
      over = true;
    });
  }
}

// Goroutines call the runtime without pause, and need not wait for long. Without an end of run() in
// time they give up.
template <class Call>
void end_while_goroutines_call(int goroutines, Call call) {
  std::atomic<bool> calls{false}, gives_up{false}, over{false};
  std::thread watch([&] {
    for (int i = 0; i < 600 && !over; ++i) std::this_thread::sleep_for(50ms);
    gives_up = true;
  });
  run(Options{.procs = goroutines + 1}, [&] {
    for (int i = 0; i < goroutines; ++i) {
      go([&] {
        for (; !gives_up; calls = true) call();
      });
    }
    while (!calls) yield();
  });
  EXPECT_FALSE(gives_up);
  over = true;
  watch.join();
}

template <class Call>
void end_while_goroutine_calls(Call call) {
  end_while_goroutines_call(1, call);
}

TEST(Ends, AGoroutineThatTriesToReceiveWithoutPauseIsLeftBehind) {
  const Chan<int> empty = new_channel();
  end_while_goroutine_calls([&] { (void)empty.try_recv(); });
}

TEST(Ends, AGoroutineThatTriesToSendWithoutPauseIsLeftBehind) {
  const Chan<int> empty = new_channel();
  end_while_goroutine_calls([&] { (void)empty.try_send(1); });
}

TEST(Ends, AGoroutineThatSendsAndReceivesWithoutPauseIsLeftBehind) {
  const Chan<int> buffered(1);
  end_while_goroutine_calls([&] {
    buffered.send(1);
    (void)buffered.recv();
  });
}

TEST(Ends, AGoroutineThatSelectsWithoutPauseIsLeftBehind) {
  const Chan<int> empty = new_channel();
  end_while_goroutine_calls([&] { select(on_recv(empty), otherwise()); });
}

TEST(Ends, AGoroutineThatLocksAndUnlocksWithoutPauseIsLeftBehind) {
  Mutex mutex;
  end_while_goroutine_calls([&] { std::lock_guard hold(mutex); });
  EXPECT_TRUE(mutex.try_lock()) << "it was dropped with the lock held";
}

TEST(Ends, AGoroutineThatTriesToLockWithoutPauseIsLeftBehind) {
  Mutex mutex;
  RWMutex rw_mutex;
  std::lock_guard hold(mutex);
  std::lock_guard hold_too(rw_mutex);
  end_while_goroutine_calls([&] { EXPECT_FALSE(mutex.try_lock()); });
  end_while_goroutine_calls([&] { EXPECT_FALSE(rw_mutex.try_lock()); });
  end_while_goroutine_calls([&] { EXPECT_FALSE(rw_mutex.try_lock_shared()); });
}

TEST(Ends, AGoroutineThatReadsOrWritesUnderAnRWMutexWithoutPauseIsLeftBehind) {
  RWMutex mutex;
  end_while_goroutine_calls([&] { std::lock_guard hold(mutex); });
  EXPECT_TRUE(mutex.try_lock()) << "it was dropped with the lock held";
  mutex.unlock();
  end_while_goroutine_calls([&] { std::shared_lock hold(mutex); });
  EXPECT_TRUE(mutex.try_lock()) << "it was dropped with the lock held";
}

TEST(Ends, AGoroutineThatTakesFreeUnitsWithoutPauseIsLeftBehind) {
  Semaphore units(1), none(0);
  end_while_goroutine_calls([&] {
    units.acquire();
    units.release();
  });
  EXPECT_TRUE(units.try_acquire()) << "it was dropped with the unit";
  end_while_goroutine_calls([&] { EXPECT_FALSE(none.try_acquire()); });
}

// Locks are as before when run() has ended.
TEST(Ends, TheShortWayOfLocksIsOpenAgain) {
  Mutex mutex;
  end_while_goroutine_calls([&] { std::lock_guard hold(mutex); });
  EXPECT_FALSE(detail::short_way.is_closed());
}

bool p_was_taken_for_the_end() {
  let_signals_in();
  return sched::runtime->world.ending() && sched::current_m()->grip.is_taken();
}

// A goroutine holds a lock when main returns. It unlocks it when run() has begun to leave it
// behind, and a plain thread waits for the lock.
template <class Lock, class Unlock>
void end_while_lock_is_given_back(Lock lock, Unlock unlock, std::function<void()> wait) {
  std::atomic<bool> locked{false};
  std::optional<support::SleepingThread> waiting;
  run(Options{.procs = 2}, [&] {
    go([&] {
      lock();
      locked = true;
      while (!p_was_taken_for_the_end()) {
      }
      unlock();
    });
    while (!locked) yield();
    waiting.emplace(wait);
  });
  EXPECT_TRUE(waiting->goes_on()) << "it was dropped with the lock held";
}

TEST(Ends, ALockThatADroppedGoroutineWasGivingBackIsFree) {
  Mutex mutex;
  RWMutex rw_mutex;
  auto lock = [](auto& its) { std::lock_guard hold(its); };
  end_while_lock_is_given_back([&] { mutex.lock(); }, [&] { mutex.unlock(); },
                               [&] { lock(mutex); });
  end_while_lock_is_given_back([&] { rw_mutex.lock(); }, [&] { rw_mutex.unlock(); },
                               [&] { lock(rw_mutex); });
  end_while_lock_is_given_back([&] { rw_mutex.lock(); }, [&] { rw_mutex.unlock(); },
                               [&] { std::shared_lock hold(rw_mutex); });
  end_while_lock_is_given_back([&] { rw_mutex.lock_shared(); }, [&] { rw_mutex.unlock_shared(); },
                               [&] { lock(rw_mutex); });
}

TEST(Ends, UnitsThatADroppedGoroutineWasGivingBackAreThereForThreads) {
  Semaphore units(2);
  end_while_lock_is_given_back([&] { units.acquire(2); }, [&] { units.release(2); },
                               [&] { units.acquire(2); });
}

TEST(Ends, AGoroutineThatIsDroppedAsItBeginsToWaitForAConditionHasUnlocked) {
  Mutex mutex;
  CondVar changed;
  end_while_lock_is_given_back([&] { mutex.lock(); }, [&] { changed.wait(mutex); },
                               [&] { std::lock_guard hold(mutex); });
}

// A goroutine wants to read when run() has begun to leave it behind. A plain thread writes.
void end_while_reader_comes(std::function<void(RWMutex&)> lock_shared) {
  RWMutex mutex;
  mutex.lock();
  std::atomic<bool> runs{false};
  run(Options{.procs = 2}, [&] {
    go([&] {
      runs = true;
      while (!p_was_taken_for_the_end()) {
      }
      lock_shared(mutex);
    });
    while (!runs) yield();
  });
  mutex.unlock();
  ASSERT_TRUE(mutex.try_lock()) << "a reader that was dropped is still counted";
  mutex.unlock();
}

TEST(Ends, AReaderThatIsDroppedBeforeItWaitsKeepsNoWriterOut) {
  end_while_reader_comes([](RWMutex& mutex) { mutex.lock_shared(); });
  end_while_reader_comes([](RWMutex& mutex) { (void)mutex.try_lock_shared_for(1h); });
  end_while_reader_comes([](RWMutex& mutex) { mutex.lock_shared(Context::background()); });
}

TEST(Ends, ASlotOfATaskGroupIsGivenBackOnceByAGoroutineThatIsDroppedAsItEnds) {
  TaskGroup group;
  group.set_limit(1);
  std::atomic<bool> runs{false};
  run(Options{.procs = 2}, [&] {
    group.go([&] {
      runs = true;
      while (!p_was_taken_for_the_end()) {
      }
    });
    while (!runs) yield();
  });
  EXPECT_THROW(group.wait(), std::logic_error);
  run(Options{.procs = 2}, [&] {
    Chan<void> gate;
    EXPECT_TRUE(group.try_go([gate] { gate.recv(); }));
    EXPECT_FALSE(group.try_go([] {}));
    gate.close();
    group.wait();
  });
}

// The same if a goroutine waits, which is dropped too.
template <class Lockable>
void end_while_lock_is_given_to_goroutine(Lockable& lock) {
  std::atomic<bool> locked{false};
  run(Options{.procs = 2}, [&] {
    go([&] {
      std::lock_guard hold(lock);
      locked = true;
      while (!p_was_taken_for_the_end()) {
      }
    });
    while (!locked) yield();
    go([&] { lock.lock(); });
    EXPECT_TRUE(support::eventually([] { return stats().waiting == 1; }));
  });
  EXPECT_TRUE(lock.try_lock()) << "one was dropped with the lock held";
  lock.unlock();
}

TEST(Ends, ALockThatADroppedGoroutineWasGivingToAnotherIsFree) {
  Mutex mutex;
  end_while_lock_is_given_to_goroutine(mutex);
  RWMutex rw_mutex;
  end_while_lock_is_given_to_goroutine(rw_mutex);
}

// What the library locks inside is in use when main returns, by goroutines that are in each other's
// way. Afterwards a plain thread uses it.
template <class Call>
void end_while_it_is_used(Call call) {
  end_while_goroutines_call(3, call);
  std::atomic<bool> done{false};
  std::thread later([&] {
    call();
    done = true;
  });
  if (!support::eventually([&] { return done.load(); })) {
    ADD_FAILURE() << "a dropped goroutine has left it locked";
    std::abort();  // the thread waits for ever
  }
  later.join();
}

TEST(Ends, LimitersBreakersAndPoolsAreNotLeftLocked) {
  const int rounds = support::scaled(20);
  for (int i = 0; i < rounds; ++i) {
    RateLimiter limiter(1e9, 1'000'000);
    end_while_it_is_used([&] { (void)limiter.allow(); });
    CircuitBreaker breaker;
    end_while_it_is_used([&] {
      (void)breaker.allow();
      breaker.record_success();
    });
    Pool<int> pool(8, [] { return 1; });
    end_while_it_is_used([&] { (void)pool.idle(); });
  }
}

// Without a maker of threads everybody makes them. Here a goroutine's thread makes one while main
// returns.
std::atomic<bool> making_third{false}, main_returns{false}, third_began{false};

TEST(Ends, AThreadThatIsBeingMadeWhenMainReturnsIsWaitedFor) {
  constexpr int kMaker = 2, kThird = 4;  // sysmon is the first
  making_third = main_returns = third_began = false;
  support::ThreadsAsk ask(
      [](int number) {
        if (number == kThird) {
          making_third = true;
          // Not for ever: on a slow machine it may be main's own thread that makes it.
          for (int i = 0; i < 50'000 && !main_returns; ++i) usleep(100);
          usleep(50'000);  // run() has most likely come to wait for its threads
        }
        return number != kMaker;
      },
      [](int number) {
        if (number != kThird) return;
        usleep(50'000);  // late
        third_began = true;
      });
  run(Options{.procs = 3}, [] {
    go([] {
      go([] { spin_until(making_third); });
      spin_until(making_third);
    });
    spin_until(making_third);  // the thread of the goroutine makes the next
    main_returns = true;
  });
  EXPECT_TRUE(third_began) << "run() has not waited for it";
}

// Functions that timers were to call are destroyed as run() ends. What they own may be timers that
// are armed too.
TEST(Ends, AFunctionThatATimerWasToCallMayOwnOtherTimers) {
  run([] {
    Context context = Context::background().with_timeout(2h);
    (void)after_func(1h, [context] {});
    (void)after_func(1h, [timer = std::make_shared<Timer>(2h)] {});
    (void)after_func(1h, [ticker = std::make_shared<Ticker>(2h)] {});
  });
}

// The destructor of such a function waits for a thread, and the thread stops another timer of the
// same run().
TEST(Ends, AThreadMayStopATimerWhileAFunctionThatAnotherWasToCallIsDestroyed) {
  struct WaitsForThread {
    explicit WaitsForThread(Timer timer)
        : thread([this, timer] {
            while (!dies) std::this_thread::yield();
            timer.stop();
          }) {}
    ~WaitsForThread() {
      dies = true;
      thread.join();
    }
    std::atomic<bool> dies{false};
    std::thread thread;
  };
  run([] {
    Timer later = after_func(2h, [] {});
    (void)after_func(1h, [waits = std::make_shared<WaitsForThread>(later)] {});
  });
}

}  // namespace
}  // namespace magpie
