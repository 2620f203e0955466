// Model of [timer]: an owner removes its timer and destroys the record while others fire it, or it
// is moved.
//
// Checked   It fires at most once per insertion, and never after remove() said removed; nobody
//           touches the record after the owner was told that it may destroy it (a plain variable
//           stands for its memory); an owner that disarmed and waited sees what fire did.
//           One who stops it without a lock of the owners' and one who starts it anew do not touch
//           it at once.
// Bounds    One owner and one that fires, or moves it to another set: every interleaving. Both at
//           once: at most three preemptions. Two owners: every interleaving.
// Stands in The set: a lock, and the timer's place in it. remove() mirrors TimerSet::remove, take()
//           take_due.
//
// Mutant MUTANT_RELAXED_RELEASE   the owner does not see what fire did
// Mutant MUTANT_NO_SECOND_LOOK    remove trusts what it read without the lock
// Mutant MUTANT_NO_WAIT           the owner does not wait for a fire that has begun
#include "model_run.h"

#include "timer/timer.h"

namespace magpie::timer {

// Stands for the product's: one timer, or none.
class TimerSet {
 public:
  rl::mutex lock;
  rl::var<bool> has;
};

}  // namespace magpie::timer

namespace {

using magpie::timer::TimerSet;
using magpie::timer::TimerWord;
using model::chosen;

template <int others>
struct Owner : model::Scenario<1 + others> {
  TimerSet sets[2];
  TimerWord word;
  rl::var<int> memory;  // the record's
  rl::var<int> fired;

  void before() override {
    memory(RL_INFO) = 1;
    fired(RL_INFO) = 0;
    sets[0].has(RL_INFO) = true;
    sets[1].has(RL_INFO) = false;
    word.enter(&sets[0]);
  }

  void thread(unsigned index) override {
    if (index == 0) {
      own();
    } else if (index == 1) {
      fire_due(sets[0]);
    } else {
      move();
      fire_due(sets[1]);
    }
  }

  enum class Removal { removed, idle, firing };
  Removal remove() {
    for (;;) {
      auto [set, firing] = word.view();
      if (set == nullptr) return firing ? Removal::firing : Removal::idle;
      set->lock.lock(RL_INFO);
      if (!chosen<"MUTANT_NO_SECOND_LOOK">() && word.view().set != set) {
        set->lock.unlock(RL_INFO);
        continue;
      }
      set->has(RL_INFO) = false;
      word.make_idle();
      set->lock.unlock(RL_INFO);
      return Removal::removed;
    }
  }

  void own() {
    if (word.is_idle()) {  // it has fired, and whoever fired it has let go of it
      RL_ASSERT(fired(RL_INFO) == 1);
      memory(RL_INFO) = 0;
      return;
    }
    Removal how = remove();
    if (how == Removal::firing && !chosen<"MUTANT_NO_WAIT">()) {
      while (word.view().firing) rl::yield(1, RL_INFO);
    }
    RL_ASSERT(fired(RL_INFO) == (how == Removal::removed ? 0 : 1));
    memory(RL_INFO) = 0;
  }

  void fire_due(TimerSet& set) {
    set.lock.lock(RL_INFO);
    bool due = set.has(RL_INFO);
    if (due) {
      set.has(RL_INFO) = false;
      word.take();
    }
    set.lock.unlock(RL_INFO);
    if (!due) return;
    RL_ASSERT(memory(RL_INFO) == 1);
    fired(RL_INFO) = fired(RL_INFO) + 1;
    word.finish();
  }

  void move() {
    sets[0].lock.lock(RL_INFO);
    sets[1].lock.lock(RL_INFO);
    if (sets[0].has(RL_INFO)) {
      sets[0].has(RL_INFO) = false;
      sets[1].has(RL_INFO) = true;
      word.enter(&sets[1]);
    }
    sets[1].lock.unlock(RL_INFO);
    sets[0].lock.unlock(RL_INFO);
  }
};

// One owner stops it, another finds it stopped and puts it into another set.
struct TwoOwners : model::Scenario<2> {
  TimerSet sets[2];
  TimerWord word;
  rl::var<int> place;

  void before() override {
    place(RL_INFO) = 1;
    sets[0].has(RL_INFO) = true;
    sets[1].has(RL_INFO) = false;
    word.enter(&sets[0]);
  }

  void thread(unsigned index) override {
    if (index == 0) {
      sets[0].lock.lock(RL_INFO);
      sets[0].has(RL_INFO) = false;
      RL_ASSERT(place(RL_INFO) == 1);
      word.make_idle();
      sets[0].lock.unlock(RL_INFO);
    } else if (word.view().set == nullptr) {
      sets[1].lock.lock(RL_INFO);
      place(RL_INFO) = 2;
      sets[1].has(RL_INFO) = true;
      word.enter(&sets[1]);
      sets[1].lock.unlock(RL_INFO);
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Owner<1>>("remove or fire", model::full())
      .explore<TwoOwners>("stop and start anew", model::full())
      .explore<Owner<2>>("remove, fire or move", model::bounded(3))
      .report();
}
