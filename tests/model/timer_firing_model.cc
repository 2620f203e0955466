// Model of [timer-firing]: handles stop a timer, start it anew and go, while others fire it.
//
//           A run() ends, and the timer is started anew in the next.
//
// Checked   Each start ends in one value, or in a stop() or reset() that says so, never in both;
//           after a stop() that nobody follows no value comes; the record is freed once, by the
//           last handle or the one that fires it, and nobody touches it after that (a plain
//           variable stands for its memory); what is guarded by the timer's lock is (another one).
// Bounds    One handle and one that fires: every interleaving. Two handles, or one that starts it
//           twice: so many preemptions as main() says.
// Stands in The set: a lock, and the timer's place in it, as in timer_model.cc; timer_state.cc's
//           steps.
//
// Mutant MUTANT_NO_WORD          stop() does not leave word for the one that fires it
// Mutant MUTANT_ORPHANS_ANYWAY   the last handle does not look whether firing has been decided
// Mutant MUTANT_NEVER_ORPHANS    the last handle waits for the one that fires it, but not for one
//                                that will
// Mutant MUTANT_IDLE_TOO_EARLY   whoever fires it makes it idle before it releases the lock
// Mutant MUTANT_STAYS_DECIDED    a timer that was started anew seems to have been decided
// Mutant MUTANT_STARTS_FIRING    reset() does not wait until it is idle
// Mutant MUTANT_KEEPS_WORD       the end of run() leaves the word to the next one
// Mutant MUTANT_FREES_AT_ONCE    the last handle frees an idle one that is still locked by the one
//                                that fired it
#include "model_run.h"
#include "waiters.h"

#include "time/firing.h"
#include "timer/timer.h"

namespace magpie::timer {

// Stands for the product's: one timer, or none.
class TimerSet {
 public:
  TimerSet() { has(RL_INFO) = false; }
  rl::mutex lock;
  rl::var<bool> has;
};

}  // namespace magpie::timer

namespace {

using magpie::detail::TimerFiring;
using magpie::timer::TimerSet;
using magpie::timer::TimerWord;
using model::chosen;

constexpr std::int64_t kNever = TimerFiring::kNever;
constexpr std::int64_t kSoon = 1;

// timer_state.cc
struct TimerState {
  TimerSet set;  // the scheduler's: it outlives the record
  rl::var<int> delivered;

  model::Memory memory;  // of what follows
  TimerWord word;
  rl::mutex lock;
  TimerFiring firing;
  rl::var<int> guarded;  // by lock, as `firing` is
  magpie::base::Atomic<std::uint32_t> handles;

  explicit TimerState(std::uint32_t held_by) : handles(held_by) {
    delivered(RL_INFO) = 0;
    guarded(RL_INFO) = 0;
    arm();
  }

  void lock_it() {
    lock.lock(RL_INFO);
    memory.touch();
    guarded(RL_INFO) = guarded(RL_INFO) + 1;
  }
  void unlock_it() {
    memory.touch();
    lock.unlock(RL_INFO);
  }

  void arm() {
    set.lock.lock(RL_INFO);
    memory.touch();
    RL_ASSERT(!set.has(RL_INFO));
    set.has(RL_INFO) = true;
    word.enter(&set);
    set.lock.unlock(RL_INFO);
  }

  enum class Removal { removed, idle, firing };
  Removal disarm() {
    for (;;) {
      memory.touch();
      auto [where, is_firing] = word.view();
      if (where == nullptr) return is_firing ? Removal::firing : Removal::idle;
      set.lock.lock(RL_INFO);
      bool there = word.view().set == where;
      if (there) {
        set.has(RL_INFO) = false;
        word.make_idle();
      }
      set.lock.unlock(RL_INFO);
      if (there) return Removal::removed;
    }
  }

  void wait_until_idle() {
    while (word.view().firing) rl::yield(1, RL_INFO);
  }

  // ---- by those who hold it

  bool stop() {
    if (disarm() == Removal::removed) return true;
    lock_it();
    Removal where = disarm();
    bool was_active = where == Removal::removed;
    if (where == Removal::firing && firing.may_leave_word()) {
      was_active = true;
      if (!chosen<"MUTANT_NO_WORD">()) was_active = firing.leave_word(kNever);
    }
    unlock_it();
    return was_active;
  }

  bool reset() {
    lock_it();
    Removal where = disarm();
    bool was_active = where == Removal::removed;
    if (where == Removal::firing && firing.may_leave_word()) {
      was_active = firing.leave_word(kSoon);
    } else {
      if (where == Removal::firing && !chosen<"MUTANT_STARTS_FIRING">()) wait_until_idle();
      if (!chosen<"MUTANT_STAYS_DECIDED">()) firing.begin();
      arm();
    }
    unlock_it();
    return was_active;
  }

  void let_go() {
    if (handles.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    bool at_once = !firing.was_rearmed() || chosen<"MUTANT_FREES_AT_ONCE">();
    if (word.is_idle() && at_once) return memory.destroy();
    lock_it();
    auto where = word.view();
    bool left = !chosen<"MUTANT_NEVER_ORPHANS">() && firing.leave_to_firing(where);
    if (chosen<"MUTANT_ORPHANS_ANYWAY">() && where.firing) left = true;
    unlock_it();
    if (left) return;
    wait_until_idle();
    memory.destroy();
  }

  // ---- by the one that fires it

  bool take_due() {
    set.lock.lock(RL_INFO);
    bool due = set.has(RL_INFO);
    if (due) {
      memory.touch();
      set.has(RL_INFO) = false;
      word.take();
    }
    set.lock.unlock(RL_INFO);
    return due;
  }

  void fire() {
    lock_it();
    std::int64_t again = kNever;
    if (auto instead = firing.take_word()) {
      again = *instead;
    } else {
      delivered(RL_INFO) = delivered(RL_INFO) + 1;
    }
    if (again != kNever) {
      firing.rearm();
      arm();
      unlock_it();
      return;
    }
    finish_and_unlock(firing.decide());
  }

  // The run() ends.
  void drop() {
    lock_it();
    finish_and_unlock(chosen<"MUTANT_KEEPS_WORD">() ? firing.decide() : firing.drop());
  }

  void finish_and_unlock(bool dies) {
    if (chosen<"MUTANT_IDLE_TOO_EARLY">() && !dies) {
      word.finish();
      return unlock_it();
    }
    unlock_it();
    if (dies) return memory.destroy();
    memory.touch();
    word.finish();
  }
};

// Thread 0 fires it so many times as it finds it due; the others hold it.
template <int holders, int looks>
struct Firing : model::Scenario<1 + holders> {
  TimerState timer{holders};
  rl::var<int> taken_back[holders];
  rl::var<int> starts[holders];

  Firing() {
    for (auto& count : taken_back) count(RL_INFO) = 0;
    for (auto& count : starts) count(RL_INFO) = 0;
  }

  virtual void hold(unsigned holder) = 0;

  void thread(unsigned index) override {
    if (index == 0) {
      for (int i = 0; i < looks; ++i) {
        if (timer.take_due()) timer.fire();
      }
    } else {
      hold(index - 1);
      timer.let_go();
    }
  }
  void after() override {
    while (timer.take_due()) timer.fire();
    int started = 1, ended = timer.delivered(RL_INFO);
    for (auto& count : starts) started += count(RL_INFO);
    for (auto& count : taken_back) ended += count(RL_INFO);
    RL_ASSERT(started == ended);
    timer.memory.expect_destroyed();
  }

  void stop(unsigned holder) {
    if (timer.stop()) taken_back[holder](RL_INFO) = taken_back[holder](RL_INFO) + 1;
  }
  void reset(unsigned holder) {
    if (timer.reset()) taken_back[holder](RL_INFO) = taken_back[holder](RL_INFO) + 1;
    starts[holder](RL_INFO) = starts[holder](RL_INFO) + 1;
  }
};

struct LetGo : Firing<1, 1> {
  void hold(unsigned) override {}
};
struct Stop : Firing<1, 1> {
  void hold(unsigned holder) override { stop(holder); }
};
struct Reset : Firing<1, 2> {
  void hold(unsigned holder) override { reset(holder); }
};
struct ResetAndStop : Firing<1, 2> {
  rl::var<int> delivered_then;
  void hold(unsigned holder) override {
    reset(holder);
    stop(holder);
    timer.lock_it();
    delivered_then(RL_INFO) = timer.delivered(RL_INFO);
    timer.unlock_it();
  }
  void after() override {
    Firing::after();
    RL_ASSERT(timer.delivered(RL_INFO) == delivered_then(RL_INFO));
  }
};
struct StopAndReset : Firing<2, 2> {
  void hold(unsigned holder) override { holder == 0 ? stop(holder) : reset(holder); }
};
struct StopAndLetGo : Firing<2, 1> {
  void hold(unsigned holder) override {
    if (holder == 0) stop(holder);
  }
};

// Thread 0 ends the run() in which it was started.
template <int holders>
struct End : model::Scenario<2> {
  TimerState timer{holders};

  virtual void hold() {}

  void thread(unsigned index) override {
    if (index == 0) {
      if (timer.take_due()) timer.drop();
    } else {
      hold();
      timer.let_go();
    }
  }
};

struct EndAndLetGo : End<1> {
  void after() override { timer.memory.expect_destroyed(); }
};
// The other handle starts it anew in the next run().
struct EndAndStop : End<2> {
  void hold() override { timer.stop(); }
  void after() override {
    RL_ASSERT(!timer.reset());
    while (timer.take_due()) timer.fire();
    RL_ASSERT(timer.delivered(RL_INFO) == 1);
    timer.let_go();
    timer.memory.expect_destroyed();
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<LetGo>("the last handle goes", model::full())
      .explore<Stop>("stop", model::full())
      .explore<Reset>("start anew", model::bounded(5))
      .explore<ResetAndStop>("start anew and stop", model::bounded(4))
      .explore<StopAndLetGo>("one stops it, another lets go", model::bounded(3))
      .explore<StopAndReset>("one stops it, another starts it anew", model::bounded(3))
      .explore<EndAndLetGo>("run() ends, the last handle goes", model::full())
      .explore<EndAndStop>("run() ends, one stops it", model::full())
      .report();
}
