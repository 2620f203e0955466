// Model of [semaphore]: units are taken and given back; who finds too few, or others waiting, gets
// in line.
//
// Checked   No unit is taken twice (the number inside never passes the limit); everybody is served;
//           who gets a unit sees what was done before it was released; after the last acquire the
//           semaphore may be destroyed while the others' release() has not returned (a plain
//           variable stands for its memory); a waiter that gives up leaves the units to those
//           behind it.
// Bounds    Two that use it as a lock: every interleaving. Else as many preemptions as main() says.
// Stands in The list's lock, the list, and the sleep, of which only the wake-up matters here;
//           semaphore.cc's steps.
//
// Mutant MUTANT_RELAXED_RELEASE   who gets a unit does not see what was done before
// Mutant MUTANT_RELAXED_ACQUIRE   the same
// Mutant MUTANT_NO_BIT            a waiter gets in line without saying so
// Mutant MUTANT_RELEASES_EARLY    with an empty line, the units are put there before the list's
//                                 lock is released
// Mutant MUTANT_LEAVES_SILENTLY   one that gives up does not serve those behind it
#include "model_run.h"
#include "waiters.h"

#include "sync/semaphore_core.h"

namespace {

using magpie::base::Atomic;
using magpie::sync::SemaphoreWord;
using model::chosen;

constexpr int kMost = 3;

// semaphore.cc
struct Semaphore {
  enum class Patience { usual, none };

  Atomic<std::uint64_t> word;
  model::Memory memory;
  model::ListLock list_lock{memory};
  model::Line line;
  rl::var<int> wanted[kMost];
  model::WakeUp wake_up[kMost];

  explicit Semaphore(int units) : word(SemaphoreWord::pack(units)) {}

  // Who was served: bits.
  int serve() {
    int served = 0;
    for (;;) {
      int first = line.first();
      if (first < 0) {
        SemaphoreWord::clear_waiters(word);
        return served;
      }
      if (!SemaphoreWord::take_locked(word, wanted[first](RL_INFO))) return served;
      line.remove(first);
      served |= 1 << first;
    }
  }
  void wake_all(int served) {
    for (int i = 0; i < kMost; ++i) {
      if ((served >> i & 1) != 0) wake_up[i].send();
    }
  }

  bool take_or_ask(int units) {
    if (chosen<"MUTANT_NO_BIT">())
      return SemaphoreWord::try_take(word, units) == SemaphoreWord::Taken::yes;
    return SemaphoreWord::take_or_ask(word, units);
  }

  // False: given up.
  bool take(int self, int units, Patience patience) {
    if (SemaphoreWord::try_take(word, units) == SemaphoreWord::Taken::yes) return true;
    list_lock.lock();
    if (line.size() == 0 && take_or_ask(units)) {
      list_lock.unlock();
      return true;
    }
    wanted[self](RL_INFO) = units;
    line.push_back(self);
    list_lock.unlock();
    if (patience == Patience::none && leave_line(self)) return false;
    wake_up[self].wait();
    return true;
  }

  bool leave_line(int self) {
    list_lock.lock();
    bool listed = line.remove(self);
    int served = listed && !chosen<"MUTANT_LEAVES_SILENTLY">() ? serve() : 0;
    list_lock.unlock();
    wake_all(served);
    return listed;
  }

  void give(int units) {
    while (SemaphoreWord::release(word, units) == SemaphoreWord::Released::others_wait) {
      list_lock.lock();
      bool others_wait = line.size() != 0 || chosen<"MUTANT_RELEASES_EARLY">();
      if (others_wait) RL_ASSERT(SemaphoreWord::put_locked(word, units));
      int served = serve();
      list_lock.unlock();
      wake_all(served);
      if (others_wait) return;
    }
  }
};

using Patience = Semaphore::Patience;

// A lock made of a semaphore with one unit: each goes in, the last one destroys it.
template <int threads, Patience of_the_last>
struct AsLock : model::Scenario<threads> {
  Semaphore semaphore{1};
  rl::var<int> visits;
  Atomic<std::uint32_t> to_come{threads};

  void before() override { visits(RL_INFO) = 0; }

  void thread(unsigned index) override {
    int self = static_cast<int>(index);
    auto patience = self == threads - 1 ? of_the_last : Patience::usual;
    if (!semaphore.take(self, 1, patience)) {
      to_come.fetch_sub(1, std::memory_order_acq_rel);
      return;
    }
    visits(RL_INFO) = visits(RL_INFO) + 1;
    bool last = to_come.fetch_sub(1, std::memory_order_acq_rel) == 1;
    semaphore.give(1);
    if (last) semaphore.memory.destroy();
  }
};

// One wants two units, another one, a third gives two, one by one.
template <Patience of_the_large>
struct LargeAndSmall : model::Scenario<3> {
  Semaphore semaphore{0};
  rl::var<int> result;

  void before() override { result(RL_INFO) = 0; }

  void thread(unsigned index) override {
    if (index == 0) {
      if (semaphore.take(0, 2, of_the_large)) {
        RL_ASSERT(result(RL_INFO) == 7);
        semaphore.give(2);
      }
    } else if (index == 1) {
      RL_ASSERT(semaphore.take(1, 1, Patience::usual));
      RL_ASSERT(result(RL_INFO) == 7);
      semaphore.give(1);
    } else {
      result(RL_INFO) = 7;
      semaphore.give(1);
      if (of_the_large == Patience::usual) semaphore.give(1);
    }
  }
  void after() override {
    std::uint64_t units = of_the_large == Patience::usual ? 2 : 1;
    RL_ASSERT(semaphore.word.peek() == SemaphoreWord::pack(static_cast<std::int64_t>(units)));
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<AsLock<2, Patience::usual>>("two", model::full())
      .explore<AsLock<2, Patience::none>>("two, one gives up", model::bounded(5))
      .explore<LargeAndSmall<Patience::none>>("the large one gives up", model::bounded(3))
      .explore<LargeAndSmall<Patience::usual>>("large and small", model::bounded(2))
      .explore<AsLock<3, Patience::usual>>("three", model::bounded(2))
      .explore<AsLock<3, Patience::none>>("three, one gives up", model::bounded(3))
      .report();
}
