// Model of [quick-lock]: who unlocks and who goes to sleep.
//
// Checked   One holder at a time, who sees what the one before wrote; nobody sleeps for ever.
// Bounds    Two threads: every interleaving; twice each: at most five preemptions. Three: at most
//           three, and random executions. Four, twice each: random executions.
// Stands in The kernel's futex: compare and sleep are one step under its own lock.
//
// Mutant MUTANT_NO_FENCE          unlocker and sleeper miss each other
// Mutant MUTANT_RELAXED_RELEASE   the next holder does not see what was written
// Mutant MUTANT_BLIND_EXCHANGE    two hold it
// Mutant MUTANT_SLEEP_WHILE_HELD  a call was answered before the sleep, and the next holder sees
//                                 none
// Mutant MUTANT_NO_CALL_FOR_NEXT  who got the lock leaves the others asleep
// Mutant MUTANT_NO_SECOND_CALL    who was woken in vain sleeps again without a call
#include "model_run.h"

#include "base/quick_lock.h"

namespace {

using magpie::base::QuickLockWords;
using model::chosen;

template <unsigned threads, int times = 1>
struct Holders : model::Scenario<threads> {
  QuickLockWords words;
  rl::var<int> written;
  rl::mutex kernel;
  rl::condition_variable sleeping;

  void before() override { written(RL_INFO) = 0; }

  // Sleeps if the call stands.
  void futex_wait() {
    kernel.lock(RL_INFO);
    bool stands = words.call().load(std::memory_order_relaxed) == QuickLockWords::kWanted;
    if (chosen<"MUTANT_SLEEP_WHILE_HELD">()) stands = !words.looks_free();
    if (stands) sleeping.wait(kernel, RL_INFO);
    kernel.unlock(RL_INFO);
  }
  void futex_wake() {
    kernel.lock(RL_INFO);
    sleeping.notify_one(RL_INFO);
    kernel.unlock(RL_INFO);
  }

  void lock() {
    if (words.try_lock()) return;
    bool first = true;
    do {
      if (first || !chosen<"MUTANT_NO_SECOND_CALL">()) words.call_for_it();
      first = false;
      if (words.try_lock()) break;
      futex_wait();
    } while (!words.try_lock());
    if (!chosen<"MUTANT_NO_CALL_FOR_NEXT">()) words.call_for_next();
  }

  void thread(unsigned) override {
    for (int i = 0; i < times; ++i) {
      lock();
      written(RL_INFO) = written(RL_INFO) + 1;
      if (words.unlock() && words.answer()) futex_wake();
    }
  }

  void after() override { RL_ASSERT(written(RL_INFO) == static_cast<int>(threads) * times); }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Holders<2>>("two threads", model::full())
      .explore<Holders<3>>("three threads", model::bounded(3))
      .explore<Holders<3>>("three threads", model::random(200'000))
      .explore<Holders<2, 2>>("two threads, twice", model::bounded(5))
      .explore<Holders<4, 2>>("four threads, twice", model::random(100'000))
      .report();
}
