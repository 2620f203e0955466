// Model of [wait-group]: goroutines finish, others wait for them and destroy the group.
//
// Checked   A waiter goes on only when everybody is done, and sees what they did; every waiter goes
//           on; nobody touches the group after the last waiter returned (a plain variable stands
//           for its memory).
//           A group that is used again while others still wait lets nobody go before the second
//           zero.
// Bounds    One finisher and one waiter: every interleaving. Two and one, one and two: at most
//           three preemptions; used again: two.
// Stands in The list's lock, and the sleep, of which only the wake-up matters here.
//
// Mutant MUTANT_ZERO_UNLOCKED     the count becomes zero before the list's lock is taken
// Mutant MUTANT_RELAXED_RELEASE   a waiter does not see what was done before done()
// Mutant MUTANT_NO_ZERO_CHECK     a waiter announces itself although the count is zero, and sleeps
//                                 for ever
#include "model_run.h"
#include "waiters.h"

#include "sync/wait_group_core.h"

namespace {

using magpie::base::Atomic;
using magpie::sync::WaitGroupWord;
using model::chosen;

// wait_group.cc
struct Group {
  static constexpr int kWaiters = 2;
  Atomic<std::uint64_t> word;
  model::Memory memory;
  model::ListLock list_lock{memory};
  rl::var<int> list;  // who sleeps: bit i is waiter i
  model::WakeUp wake_up[kWaiters];

  explicit Group(std::uint64_t count) : word(count << 1) { list(RL_INFO) = 0; }

  void done() {
    if (chosen<"MUTANT_ZERO_UNLOCKED">()) return done_unlocked();
    while (WaitGroupWord::add(word, -1) == WaitGroupWord::Added::zero_with_waiters) {
      if (add_and_wake()) return;
    }
  }
  void done_unlocked() {
    if (word.fetch_sub(2, std::memory_order_acq_rel) != 3) return;
    list_lock.lock();
    WaitGroupWord::clear_waiters(word);
    int sleeping = list(RL_INFO);
    list(RL_INFO) = 0;
    list_lock.unlock();
    wake(sleeping);
  }

  bool add_and_wake() {
    list_lock.lock();
    int sleeping = list(RL_INFO);
    if (sleeping == 0) {
      WaitGroupWord::clear_waiters(word);
      list_lock.unlock();
      return false;
    }
    if (WaitGroupWord::add_locked(word, -1) == WaitGroupWord::Added::zero_with_waiters) {
      list(RL_INFO) = 0;
    } else {
      sleeping = 0;
    }
    list_lock.unlock();
    wake(sleeping);
    return true;
  }

  void wake(int sleeping) {
    for (int i = 0; i < kWaiters; ++i) {
      if ((sleeping >> i & 1) != 0) wake_up[i].send();
    }
  }

  void wait(unsigned index) {
    if (WaitGroupWord::is_zero(word)) return;
    list_lock.lock();
    if (chosen<"MUTANT_NO_ZERO_CHECK">()) {
      word.fetch_add(1, std::memory_order_acq_rel);
    } else if (!WaitGroupWord::announce_waiter(word)) {
      list_lock.unlock();
      return;
    }
    list(RL_INFO) = list(RL_INFO) | 1 << index;
    list_lock.unlock();
    wake_up[index].wait();
  }
};

// Each finisher leaves a result; the last waiter to return destroys the group.
template <int finishers, int waiters>
struct Finish : model::Scenario<finishers + waiters> {
  Group group{finishers};
  rl::var<int> results[finishers];
  Atomic<std::uint32_t> returned{0};

  void before() override {
    for (auto& result : results) result(RL_INFO) = 0;
  }
  void thread(unsigned index) override {
    if (index < finishers) {
      results[index](RL_INFO) = 7;
      group.done();
      return;
    }
    group.wait(index - finishers);
    for (auto& result : results) RL_ASSERT(result(RL_INFO) == 7);
    if (returned.fetch_add(1, std::memory_order_acq_rel) + 1 == waiters) group.memory.destroy();
  }
};

// One of two waiters uses the group again as soon as it has returned.
struct Reuse : model::Scenario<3> {
  Group group{1};
  Atomic<std::uint32_t> again{0};
  rl::var<int> result;

  void before() override { result(RL_INFO) = 0; }
  void thread(unsigned index) override {
    if (index == 0) {
      group.done();
      while (again.load(std::memory_order_acquire) == 0) rl::yield(1, RL_INFO);
      result(RL_INFO) = 7;
      group.done();
    } else if (index == 1) {
      group.wait(0);
    } else {
      group.wait(1);
      RL_ASSERT(WaitGroupWord::add(group.word, 1) == WaitGroupWord::Added::done);
      again.store(1, std::memory_order_release);
      group.wait(1);
      RL_ASSERT(result(RL_INFO) == 7);
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Finish<1, 1>>("one finisher, one waiter", model::full())
      .explore<Finish<2, 1>>("two finishers, one waiter", model::bounded(3))
      .explore<Finish<1, 2>>("one finisher, two waiters", model::bounded(3))
      .explore<Reuse>("used again", model::bounded(2))
      .report();
}
