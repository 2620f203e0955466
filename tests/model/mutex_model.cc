// Model of [mutex]: goroutines lock and unlock; who finds it taken gets in line, is woken or handed the mutex.
//
// Checked   Who holds the mutex is alone and sees what the one before it did (a plain variable); everybody gets it; a
//           waiter whose time is up leaves the rest in order; the last to get the mutex may destroy it while the others'
//           unlock() has not returned (a plain variable stands for its memory).
// Bounds    Two threads: every interleaving. Three, of which one is starving or one gives up, and two that come
//           twice: so many preemptions as main() says.
// Stands in The list's lock, the list, and the sleep, of which only the wake-up matters here; mutex.cc's steps.
//
// Mutant MUTANT_RELAXED_RELEASE   the next owner does not see what the one before did
// Mutant MUTANT_RELAXED_ACQUIRE   the same
// Mutant MUTANT_NO_CALL           a newcomer gets in line without asking
// Mutant MUTANT_FORGETS_LINE   a woken one takes the mutex and does not look at the line
// Mutant MUTANT_FREE_HAND_OVER   the mutex is free while it is handed over
// Mutant MUTANT_GIVES_BACK_EARLY   an empty line: the mutex is given back before the list's lock
// Mutant MUTANT_LEAVES_SILENTLY   a woken one whose time is up does not ask for those behind it
#include "model_run.h"

#include "sync/mutex_core.h"

namespace {

using magpie::base::acquire;
using magpie::base::Atomic;
using magpie::base::relaxed;
using magpie::base::release;
using magpie::sync::MutexWord;
using model::chosen;

constexpr int kMost = 3;

// mutex.cc, with a lock and a list of its own.
struct Mutex {
  enum class Patience { usual, starving, none };
  enum class Turn { newcomer, woken, last };

  Atomic<std::uint32_t> word{0};
  Atomic<std::uint32_t> lock_word{0};
  rl::var<int> woken;
  rl::var<int> length;
  rl::var<int> line[kMost];
  rl::var<int> memory;  // the mutex's
  Atomic<std::uint32_t> wake[kMost];
  rl::var<int> handed[kMost];

  Mutex() {
    woken(RL_INFO) = 0;
    length(RL_INFO) = 0;
    memory(RL_INFO) = 1;
    for (auto& mark : handed) mark(RL_INFO) = 0;
  }
  void destroy() { memory(RL_INFO) = 0; }
  void touch() { RL_ASSERT(memory(RL_INFO) == 1); }

  void acquire_lock() {
    std::uint32_t free = 0;
    while (!lock_word.compare_exchange_strong(free, 1, acquire, relaxed)) {
      free = 0;
      rl::yield(1, RL_INFO);
    }
    touch();
  }
  void release_lock() {
    touch();
    lock_word.store(0, release);
  }

  // The list, under the lock.
  int size() { return length(RL_INFO); }
  int first() { return line[0](RL_INFO); }
  void push_back(int who) {
    int n = size();
    line[n](RL_INFO) = who;
    length(RL_INFO) = n + 1;
  }
  void push_front(int who) {
    for (int i = size(); i > 0; --i) line[i](RL_INFO) = line[i - 1](RL_INFO);
    line[0](RL_INFO) = who;
    length(RL_INFO) = size() + 1;
  }
  bool remove(int who) {
    int n = size(), at = 0;
    while (at < n && line[at](RL_INFO) != who) ++at;
    if (at == n) return false;
    for (; at + 1 < n; ++at) line[at](RL_INFO) = line[at + 1](RL_INFO);
    length(RL_INFO) = n - 1;
    return true;
  }

  bool take_or_get_in_line(int self, Turn turn, Patience patience) {
    acquire_lock();
    if (turn != Turn::newcomer) woken(RL_INFO) = 0;
    bool is_woken = woken(RL_INFO) != 0;
    MutexWord::Held take_as = size() == 0 || is_woken ? MutexWord::held : MutexWord::call;
    MutexWord::Held ask_for = is_woken ? MutexWord::held : MutexWord::call;
    if (!is_woken && turn == Turn::woken && patience == Patience::starving)
      ask_for = MutexWord::starving;
    if (turn == Turn::last) ask_for = take_as;
    if (chosen<"MUTANT_NO_CALL">() && turn == Turn::newcomer) ask_for = MutexWord::held;
    if (chosen<"MUTANT_FORGETS_LINE">()) take_as = MutexWord::held;
    if (chosen<"MUTANT_LEAVES_SILENTLY">() && turn == Turn::last) ask_for = MutexWord::held;
    bool taken = MutexWord::take_or_ask(word, take_as, ask_for);
    if (!taken && turn != Turn::last) turn == Turn::newcomer ? push_back(self) : push_front(self);
    release_lock();
    return taken;
  }

  bool leave_line(int self) {
    acquire_lock();
    bool listed = remove(self);
    if (listed && size() == 0) MutexWord::stop_asking(word);
    release_lock();
    return listed;
  }

  // False: given up.
  bool lock(int self, Patience patience) {
    if (MutexWord::try_take(word)) return true;
    Turn turn = Turn::newcomer;
    for (;;) {
      if (take_or_get_in_line(self, turn, patience)) return true;
      if (turn == Turn::last) return false;
      if (patience == Patience::none && leave_line(self)) return false;
      while (wake[self].load(acquire) == 0) rl::yield(1, RL_INFO);
      wake[self].store(0, relaxed);
      if (handed[self](RL_INFO) != 0) {
        handed[self](RL_INFO) = 0;
        return true;
      }
      turn = patience == Patience::none ? Turn::last : Turn::woken;
    }
  }

  void hand_to(int next) {
    remove(next);
    handed[next](RL_INFO) = 1;
    if (chosen<"MUTANT_FREE_HAND_OVER">()) return word.store(0, release);
    MutexWord::hand_over(word, size() == 0 ? MutexWord::held : MutexWord::call);
  }

  void unlock() {
    while (!MutexWord::try_give_back(word)) {
      acquire_lock();
      int next = size() == 0 ? -1 : first();
      auto line_is = next < 0 ? MutexWord::Line::empty : MutexWord::Line::waiting;
      switch (MutexWord::give_back(word, line_is)) {
        case MutexWord::GivingBack::not_yet:
          if (chosen<"MUTANT_GIVES_BACK_EARLY">() && MutexWord::try_give_back(word)) {
            return release_lock();
          }
          release_lock();
          continue;
        case MutexWord::GivingBack::was_free:
          RL_ASSERT(!"was free");
          return;
        case MutexWord::GivingBack::wake_first:
          remove(next);
          woken(RL_INFO) = 1;
          break;
        case MutexWord::GivingBack::hand_to_first:
          hand_to(next);
          break;
      }
      release_lock();
      wake[next].store(1, release);
      return;
    }
  }
};

// Each locks so many times; the last to be in destroys the mutex.
template <int threads, int rounds, Mutex::Patience of_the_last>
struct Lock : model::Scenario<threads> {
  Mutex mutex;
  rl::var<int> visits;
  Atomic<std::uint32_t> to_come{threads * rounds};

  void before() override { visits(RL_INFO) = 0; }

  void thread(unsigned index) override {
    int self = static_cast<int>(index);
    auto patience = self == threads - 1 ? of_the_last : Mutex::Patience::usual;
    for (int i = 0; i < rounds; ++i) {
      if (!mutex.lock(self, patience)) {
        to_come.fetch_sub(1,
                          std::memory_order_acq_rel);  // another may hold it: not ours to destroy
        continue;
      }
      visits(RL_INFO) = visits(RL_INFO) + 1;
      bool last = to_come.fetch_sub(1, std::memory_order_acq_rel) == 1;
      mutex.unlock();
      if (last) mutex.destroy();
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
      .report();
}
