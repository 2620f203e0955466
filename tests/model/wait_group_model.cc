// Model of [wait-group]: goroutines finish, others wait for them and destroy the group.
//
// Checked   A waiter goes on only when everybody is done, and sees what they did; every waiter goes
//           on; nobody touches the group after the last waiter returned (a plain variable stands for
//           its memory).
// Bounds    One finisher and one waiter: every interleaving. Two and one, one and two: at most three
//           preemptions.
// Stands in The list's lock, and the sleep, of which only the wake-up matters here.
//
// Mutant MUTANT_RELAXED_RELEASE   a waiter does not see what was done before done()
// Mutant MUTANT_NO_ZERO_CHECK     a waiter announces itself although the count is zero, and sleeps for ever
#include "model_run.h"

#include "sync/wait_group_core.h"

namespace {

using magpie::base::Atomic;
using magpie::sync::WaitGroupWord;

template <int finishers, int waiters>
struct Group : rl::test_suite<Group<finishers, waiters>, finishers + waiters> {
  Atomic<std::uint64_t> word{std::uint64_t{finishers} << 1};
  Atomic<std::uint32_t> lock{0};
  rl::var<int> list;    // who sleeps: bit i is waiter i
  rl::var<int> memory;  // the group's
  Atomic<std::uint32_t> woken[waiters];
  rl::var<int> results[finishers];
  Atomic<std::uint32_t> returned{0};

  void before() {
    list(RL_INFO) = 0;
    memory(RL_INFO) = 1;
    for (auto& result : results) result(RL_INFO) = 0;
  }

  void thread(unsigned index) {
    if (index < finishers) {
      finish(index);
    } else {
      wait(index - finishers);
    }
  }

  void acquire_lock() {
    std::uint32_t free = 0;
    while (!lock.compare_exchange_strong(free, 1, std::memory_order_acquire,
                                         std::memory_order_relaxed)) {
      free = 0;
      rl::yield(1, RL_INFO);
    }
  }
  void release_lock() { lock.store(0, std::memory_order_release); }

  void finish(unsigned index) {
    results[index](RL_INFO) = 7;
    if (WaitGroupWord::add(word, -1) != WaitGroupWord::Added::reached_zero_with_waiters) return;
    acquire_lock();
    WaitGroupWord::clear_waiters(word);
    int sleeping = list(RL_INFO);
    list(RL_INFO) = 0;
    release_lock();
    RL_ASSERT(memory(RL_INFO) == 1);
    for (int i = 0; i < waiters; ++i) {
      if ((sleeping >> i & 1) != 0) woken[i].store(1, std::memory_order_release);
    }
  }

  void wait(unsigned index) {
    if (!WaitGroupWord::is_zero(word)) sleep(index);
    for (auto& result : results) RL_ASSERT(result(RL_INFO) == 7);
    // The last waiter to return destroys the group.
    if (returned.fetch_add(1, std::memory_order_acq_rel) + 1 == waiters) memory(RL_INFO) = 0;
  }

  void sleep(unsigned index) {
    acquire_lock();
#ifdef MUTANT_NO_ZERO_CHECK
    word.fetch_add(1, std::memory_order_acq_rel);
#else
    if (!WaitGroupWord::announce_waiter(word)) {
      release_lock();
      return;
    }
#endif
    list(RL_INFO) = list(RL_INFO) | 1 << index;
    release_lock();
    while (woken[index].load(std::memory_order_acquire) == 0) rl::yield(1, RL_INFO);
  }
};

}  // namespace

int main() {
  return model::Runs()
      .explore<Group<1, 1>>("one finisher, one waiter", model::full())
      .explore<Group<2, 1>>("two finishers, one waiter", model::bounded(3))
      .explore<Group<1, 2>>("one finisher, two waiters", model::bounded(3))
      .report();
}
