// Model of [mutex]: goroutines lock and unlock; who finds it taken gets in line, is woken or handed
// the mutex.
//
// Checked   Who holds the mutex is alone and sees what the one before it did (a plain variable);
//           everybody gets it; a waiter whose time is up leaves the rest in order; the last to get
//           the mutex may destroy it while the others' unlock() has not returned (a plain variable
//           stands for its memory).
// Bounds    Two threads: every interleaving. Three, of which one is starving or one gives up, and
//           two that come twice: so many preemptions as main() says. The first of them may take a
//           free mutex as CALL, as when the short way is closed.
// Stands in The list's lock, the list, and the sleep, of which only the wake-up matters here;
//           mutex.cc's steps.
//
// Mutant MUTANT_RELAXED_RELEASE    the next owner does not see what the one before did
// Mutant MUTANT_RELAXED_ACQUIRE    the same
// Mutant MUTANT_NO_CALL            a newcomer gets in line without asking
// Mutant MUTANT_FORGETS_LINE       a woken one takes the mutex and does not look at the line
// Mutant MUTANT_FREE_HAND_OVER     the mutex is free while it is handed over
// Mutant MUTANT_GIVES_BACK_EARLY   an empty line: the mutex is given back before the list's lock
// Mutant MUTANT_LEAVES_SILENTLY    a woken one whose time is up does not ask for those behind it
// Mutant MUTANT_WAKES_TWO          an owner wakes a waiter although another is woken
#include "model_run.h"
#include "waiters.h"

#include "sync/mutex_core.h"

namespace {

using magpie::base::Atomic;
using magpie::base::release;
using magpie::sync::MutexWord;
using model::chosen;

constexpr int kMost = 3;

// mutex.cc
struct Mutex {
  enum class Patience { usual, starving, none };
  enum class Attempt { first, woken, last };

  Atomic<std::uint32_t> word{0};
  model::Memory memory;
  model::ListLock list_lock{memory};
  model::Line line;
  rl::var<int> woken;
  model::WakeUp wake_up[kMost];
  rl::var<int> handed[kMost];

  Mutex() {
    woken(RL_INFO) = 0;
    for (auto& mark : handed) mark(RL_INFO) = 0;
  }

  bool take_or_get_in_line(int self, Attempt attempt, Patience patience) {
    list_lock.lock();
    if (attempt != Attempt::first) woken(RL_INFO) = 0;
    bool is_woken = woken(RL_INFO) != 0;
    MutexWord::Held take_as = line.size() == 0 || is_woken ? MutexWord::held : MutexWord::call;
    MutexWord::Held ask_for = is_woken ? MutexWord::held : MutexWord::call;
    if (!is_woken && attempt == Attempt::woken && patience == Patience::starving)
      ask_for = MutexWord::starving;
    if (attempt == Attempt::last) ask_for = take_as;
    if (chosen<"MUTANT_NO_CALL">() && attempt == Attempt::first) ask_for = MutexWord::held;
    if (chosen<"MUTANT_FORGETS_LINE">()) take_as = MutexWord::held;
    if (chosen<"MUTANT_LEAVES_SILENTLY">() && attempt == Attempt::last) ask_for = MutexWord::held;
    bool taken = MutexWord::take_or_ask(word, take_as, ask_for);
    if (!taken && attempt != Attempt::last)
      attempt == Attempt::first ? line.push_back(self) : line.push_front(self);
    list_lock.unlock();
    return taken;
  }

  bool leave_line(int self) {
    list_lock.lock();
    bool listed = line.remove(self);
    if (listed && line.size() == 0) MutexWord::stop_asking(word);
    list_lock.unlock();
    return listed;
  }

  // False: given up.
  bool lock(int self, Patience patience, MutexWord::Held take_as) {
    if (MutexWord::try_take(word, take_as)) return true;
    Attempt attempt = Attempt::first;
    for (;;) {
      if (take_or_get_in_line(self, attempt, patience)) return true;
      if (attempt == Attempt::last) return false;
      if (patience == Patience::none && leave_line(self)) return false;
      wake_up[self].wait();
      if (handed[self](RL_INFO) != 0) {
        handed[self](RL_INFO) = 0;
        return true;
      }
      attempt = patience == Patience::none ? Attempt::last : Attempt::woken;
    }
  }

  void hand_to(int next) {
    line.remove(next);
    handed[next](RL_INFO) = 1;
    if (chosen<"MUTANT_FREE_HAND_OVER">()) return word.store(0, release);
    MutexWord::hand_over(word, line.size() == 0 ? MutexWord::held : MutexWord::call);
  }

  void unlock() {
    while (!MutexWord::try_give_back(word)) {
      list_lock.lock();
      int next = line.first();
      bool is_woken = woken(RL_INFO) != 0 && !chosen<"MUTANT_WAKES_TWO">();
      auto line_is = next < 0 || is_woken ? MutexWord::Waiters::none : MutexWord::Waiters::some;
      switch (MutexWord::give_back(word, line_is)) {
        case MutexWord::GivingBack::not_yet:
          if (chosen<"MUTANT_GIVES_BACK_EARLY">() && MutexWord::try_give_back(word)) {
            return list_lock.unlock();
          }
          list_lock.unlock();
          continue;
        case MutexWord::GivingBack::was_free:
          RL_ASSERT(!"was free");
          return;
        case MutexWord::GivingBack::wake_first:
          RL_ASSERT(woken(RL_INFO) == 0);  // the mark is of one: it would be cleared too early
          line.remove(next);
          woken(RL_INFO) = 1;
          break;
        case MutexWord::GivingBack::hand_to_first:
          hand_to(next);
          break;
      }
      list_lock.unlock();
      wake_up[next].send();
      return;
    }
  }
};

// Each locks so many times; the last to be in destroys the mutex.
template <int threads, int rounds, Mutex::Patience of_the_last,
          MutexWord::Held of_the_first = MutexWord::held>
struct Lock : model::Scenario<threads> {
  Mutex mutex;
  rl::var<int> visits;
  Atomic<std::uint32_t> to_come{threads * rounds};

  void before() override { visits(RL_INFO) = 0; }

  void thread(unsigned index) override {
    int self = static_cast<int>(index);
    auto patience = self == threads - 1 ? of_the_last : Mutex::Patience::usual;
    auto take_as = self == 0 ? of_the_first : MutexWord::held;
    for (int i = 0; i < rounds; ++i) {
      if (!mutex.lock(self, patience, take_as)) {
        to_come.fetch_sub(1,
                          std::memory_order_acq_rel);  // another may hold it: not ours to destroy
        continue;
      }
      visits(RL_INFO) = visits(RL_INFO) + 1;
      bool last = to_come.fetch_sub(1, std::memory_order_acq_rel) == 1;
      mutex.unlock();
      if (last) mutex.memory.destroy();
    }
  }
};

using Patience = Mutex::Patience;

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Lock<2, 1, Patience::usual>>("two", model::full())
      .explore<Lock<2, 1, Patience::none>>("two, one gives up", model::full())
      .explore<Lock<2, 2, Patience::starving>>("two twice, one starving", model::bounded(5))
      .explore<Lock<3, 1, Patience::usual>>("three", model::bounded(3))
      .explore<Lock<3, 1, Patience::none>>("three, one gives up", model::bounded(3))
      .explore<Lock<3, 2, Patience::starving>>("three twice, one starving", model::random(300'000))
      .explore<Lock<3, 2, Patience::none>>("three twice, one gives up", model::random(300'000))
      .explore<Lock<2, 1, Patience::none, MutexWord::call>>("two, the short way is closed",
                                                            model::full())
      .explore<Lock<3, 2, Patience::starving, MutexWord::call>>(
          "three twice, the short way is closed", model::random(300'000))
      .report();
}
