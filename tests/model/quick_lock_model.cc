// Model of [quick-lock]: who unlocks and who goes to sleep.
//
// Checked   One holder at a time, who sees what the one before wrote; nobody sleeps for ever.
// Bounds    Two threads: every interleaving. Three: at most three preemptions, and random executions.
// Stands in The kernel's futex: compare and sleep are one step under its own lock.
//
// Mutant MUTANT_NO_FENCE          unlocker and sleeper miss each other
// Mutant MUTANT_RELAXED_RELEASE   the next holder does not see what was written
// Mutant MUTANT_BLIND_EXCHANGE    two hold it
// Mutant MUTANT_AWAKE_EARLY       a woken sleeper does not count while it tries: nobody wakes the next
#include "model_run.h"

#include "base/quick_lock.h"

namespace {

using magpie::base::QuickLockWords;
using model::chosen;

template <unsigned threads>
struct Holders : model::Scenario<threads> {
  QuickLockWords words;
  rl::var<int> written;
  rl::mutex kernel;
  rl::condition_variable sleeping;

  void before() override { written(RL_INFO) = 0; }

  // Sleeps if the lock is held.
  void futex_wait() {
    kernel.lock(RL_INFO);
    if (words.held().load(std::memory_order_relaxed) == QuickLockWords::kHeld)
      sleeping.wait(kernel, RL_INFO);
    kernel.unlock(RL_INFO);
  }
  void futex_wake() {
    kernel.lock(RL_INFO);
    sleeping.notify_one(RL_INFO);
    kernel.unlock(RL_INFO);
  }

  void lock() {
    if (words.try_lock()) return;
    words.announce_sleeper();
    bool awake_early = chosen<"MUTANT_AWAKE_EARLY">();
    while (!words.try_lock()) {
      futex_wait();
      if (awake_early) words.is_awake();
    }
    if (!awake_early) words.is_awake();
  }

  void thread(unsigned) override {
    lock();
    written(RL_INFO) = written(RL_INFO) + 1;
    if (words.unlock()) futex_wake();
  }

  void after() override { RL_ASSERT(written(RL_INFO) == threads); }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Holders<2>>("two threads", model::full())
      .explore<Holders<3>>("three threads", model::bounded(3))
      .explore<Holders<3>>("three threads", model::random(200'000))
      .report();
}
