// Model of [lock]: some take the lock, spin, sleep and wake each other. The whole base::Lock.
//
// Checked   One holder at a time, who sees what the one before wrote; nobody sleeps for ever.
// Bounds    Two threads: every interleaving. Three: at most three preemptions, and random
//           executions.
// Stands in The kernel's futex (model_futex.h).
//
// Mutant MUTANT_RELAXED_RELEASE   the next holder does not see what was written
// Mutant MUTANT_RELAXED_ACQUIRE   the same
// Mutant MUTANT_BLIND_EXCHANGE    two hold it
// Mutant MUTANT_NO_COMPARE        the kernel lets a waiter sleep although the lock is free
// Mutant MUTANT_NO_WAKE           nobody is woken
#include "model_run.h"

#include "base/lock.h"

namespace {

template <unsigned threads>
struct Holders : model::Scenario<threads> {
  model::Futex kernel;
  magpie::base::Lock lock;
  rl::var<int> written;

  void before() override { written(RL_INFO) = 0; }
  void thread(unsigned) override {
    lock.lock();
    written(RL_INFO) = written(RL_INFO) + 1;
    lock.unlock();
  }
  void after() override { RL_ASSERT(written(RL_INFO) == threads); }
};

// One that only tries.
struct Tries : model::Scenario<3> {
  model::Futex kernel;
  magpie::base::Lock lock;
  rl::var<int> written;

  void before() override { written(RL_INFO) = 0; }
  void thread(unsigned index) override {
    if (index == 0) {
      if (!lock.try_lock()) return;
    } else {
      lock.lock();
    }
    written(RL_INFO) = written(RL_INFO) + 1;
    lock.unlock();
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Holders<2>>("two threads", model::full())
      .explore<Tries>("one tries, two wait", model::bounded(3))
      .explore<Holders<3>>("three threads", model::bounded(3))
      .explore<Holders<3>>("three threads", model::random(200'000))
      .report();
}
