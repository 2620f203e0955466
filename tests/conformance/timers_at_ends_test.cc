// timers_at_ends_test.cc: timers that are stopped, reset or destroyed while run() ends.

#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <thread>
#include <utility>

namespace magpie {
namespace {

using namespace std::chrono_literals;

// What a function captured that was never called is destroyed by the thread that ends run(), while
// other timers are there.
TEST(TimersAtTheEnd, AFunctionThatIsDroppedMayHoldOthersOfAnyTime) {
  using Times = std::pair<std::chrono::hours, std::chrono::hours>;
  for (auto [first, second] : {Times{1h, 2h}, Times{2h, 1h}}) {
    run(Options{.procs = 2}, [first = first, second = second] {
      after_func(first, [context = Context::background().with_timeout(second)] {});
      after_func(first, [timer = Timer(second)] {});
      after_func(first, [ticker = Ticker(second)] {});
      after_func(first, [called = after_func(second, [] {})] { called.stop(); });
    });
  }
}

// Starts a run() that has closed to plain threads, as main has returned, and waits for a goroutine.
// Calls on_thread() on a plain thread then, and in_goroutine() when that has returned.
template <class Start, class OnThread, class InGoroutine>
void act_while_run_waits(Start start, OnThread on_thread, InGoroutine in_goroutine) {
  std::atomic<bool> main_is_over{false};
  std::binary_semaphore acted{0};
  std::thread thread([&] {
    while (!main_is_over.load() || num_threads() != 0) std::this_thread::yield();
    on_thread();
    acted.release();
  });
  const auto caller = std::this_thread::get_id();
  while (!main_is_over.load()) {
    run(Options{.procs = 2}, [&] {
      // The goroutine has to be on another thread than the one that called run().
      ThreadLock stay;
      if (std::this_thread::get_id() != caller) return;  // stolen: once more
      start();
      Chan<void> begun;
      go([&, begun] {
        begun.send();
        acted.acquire();
        in_goroutine();
      });
      begun.recv();
      main_is_over.store(true);
    });
  }
  thread.join();
}

// If stop() waited for the end of run(), which waits for the goroutine, all would stand still.
TEST(TimersAtTheEnd, StopDoesNotWaitForGoroutinesThatRunOn) {
  std::optional<Timer> timer;
  std::optional<Ticker> ticker;
  std::optional<Context> context;
  act_while_run_waits(
      [&] {
        timer.emplace(1h);
        ticker.emplace(1h);
        context = Context::background().with_timeout(1h);
      },
      [&] {
        EXPECT_TRUE(timer->stop());
        ticker->stop();
        EXPECT_THROW(ticker->reset(1h), std::logic_error);
        context.reset();
      },
      [&] { ticker->stop(); });
}

// The thread that ends run() destroys what users gave to timers, which may take long. Other timers
// are out of it by then.
TEST(TimersAtTheEnd, AResetMeanwhileIsRefusedAtOnceAndTheNextRunIsNotTold) {
  using Times = std::pair<std::chrono::hours, std::chrono::hours>;
  for (auto [first, second] : {Times{1h, 2h}, Times{2h, 1h}}) {
    std::binary_semaphore is_dropped{0}, was_reset{0};
    struct Slow {
      std::binary_semaphore &is_dropped, &was_reset;
      ~Slow() {
        is_dropped.release();
        was_reset.acquire();
      }
    };
    std::optional<Ticker> ticker;
    std::thread thread([&] {
      is_dropped.acquire();
      EXPECT_THROW(ticker->reset(3h), std::logic_error);
      was_reset.release();
    });
    run(Options{.procs = 2}, [&, first = first, second = second] {
      ticker.emplace(second);
      after_func(first, [slow = std::shared_ptr<Slow>(new Slow{is_dropped, was_reset})] {});
    });
    thread.join();
    run(Options{.procs = 2}, [&] {
      ticker->reset(1ms);
      EXPECT_TRUE(ticker->channel().recv().has_value());
    });
  }
}

}  // namespace
}  // namespace magpie
