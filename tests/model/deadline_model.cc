// Model of [deadline]: a deadline is moved while its timer fires, its run() ends, or its memory
// goes.
//
// Checked   When all is done: the deadline has passed and whoever waits was woken, or the timer is
//           in a set for a time that is not later; `armed` says which. Nobody touches the record
//           after its owner took it away.
// Bounds    See main(). The time at which the timer fires is not the one that it was armed for only
//           if it moved.
// Stands in The set and its lock, the gate for plain threads; remove() and destroy() mirror
//           TimerSet::remove and disarm_and_wait.
//
// Mutant MUTANT_NO_LOCK         the end of run() does not take the deadline's lock
// Mutant MUTANT_SAYS_ARMED      a mover believes that the timer is in a set although no runtime
//                               runs
// Mutant MUTANT_LOOKS_ONCE      the owner does not look again after a fire that has ended
// Mutant MUTANT_LEAVES_AT_ONCE  the owner does not take the lock once more, which the timer may
//                               still have
// Mutant MUTANT_NEVER_DISARMS   a mover puts the timer into a set although it is in one, or fires
// Mutant MUTANT_NEVER_FIRING    a mover takes one that fires for idle
// Mutant MUTANT_RELAXED_RELEASE the mover does not see that the fire is over
#include "model_run.h"

#include "io/deadline_core.h"

namespace magpie::timer {

// Stands for the product's: one timer, or none.
class TimerSet {
 public:
  rl::mutex lock;
  rl::var<bool> has;
  rl::var<std::int64_t> when;
};

}  // namespace magpie::timer

namespace {

using magpie::timer::kNever;
using magpie::timer::TimerSet;
using magpie::timer::TimerWord;
using model::chosen;

class Lock {
 public:
  void lock() {
    if (!is_refused()) mutex_.lock(RL_INFO);
  }
  void unlock() {
    if (record != nullptr) RL_ASSERT((*record)(RL_INFO) == 1);
    if (!is_refused()) mutex_.unlock(RL_INFO);
  }

  static inline unsigned ends_run = ~0u;         // the thread that does, while it does
  static inline rl::var<int>* record = nullptr;  // the memory that the lock is in

 private:
  static bool is_refused() { return chosen<"MUTANT_NO_LOCK">() && rl::thread_index() == ends_run; }
  rl::mutex mutex_;
};

constexpr std::int64_t kSoon = 10, kLater = 20, kLast = 30;

struct Host {
  magpie::io::DeadlineCore<Lock> core;
  TimerSet set;
  TimerWord word;
  rl::var<int> memory;  // the record's
  rl::var<int> place;   // in it: whoever arms it, then whoever fires it
  // the model's own: threads take turns
  std::int64_t now = 0;
  bool woken = false;
  bool runs = true;  // the runtime; plain threads are let in

  void begin() {
    memory(RL_INFO) = 1;
    place(RL_INFO) = 0;
    set.has(RL_INFO) = false;
    set.when(RL_INFO) = 0;
  }

  // ---- for the core
  std::int64_t now_ns() const { return now; }
  bool arm(std::int64_t at) {
    if (!runs) return chosen<"MUTANT_SAYS_ARMED">();
    set.lock.lock(RL_INFO);
    RL_ASSERT(!set.has(RL_INFO));
    set.has(RL_INFO) = true;
    set.when(RL_INFO) = at;
    place(RL_INFO) = 1;
    word.enter(&set);
    set.lock.unlock(RL_INFO);
    return true;
  }
  bool disarm() { return !chosen<"MUTANT_NEVER_DISARMS">() && remove(); }
  bool is_firing() {
    if (chosen<"MUTANT_NEVER_FIRING">()) return false;
    bool firing = word.view().firing;
    if (firing) rl::yield(1, RL_INFO);
    return firing;
  }
  void* call_passed() {
    woken = true;
    return nullptr;
  }
  void finished() {
    place(RL_INFO) = 0;  // the last touch
    word.finish();
  }

  // True: it is being fired.
  bool remove() {
    for (;;) {
      auto [in, firing] = word.view();
      if (in == nullptr) return firing;
      if (!runs) {  // disarm_from_outside(): whoever ends the run takes it out soon
        rl::yield(1, RL_INFO);
        continue;
      }
      in->lock.lock(RL_INFO);
      bool mine = word.view().set == in;
      if (mine) {
        set.has(RL_INFO) = false;
        word.make_idle();
      }
      in->lock.unlock(RL_INFO);
      if (mine) return false;
    }
  }
  bool take(std::int64_t not_after) {
    set.lock.lock(RL_INFO);
    bool taken = set.has(RL_INFO) && set.when(RL_INFO) <= not_after;
    if (taken) {
      set.has(RL_INFO) = false;
      word.take();
    }
    set.lock.unlock(RL_INFO);
    return taken;
  }

  // ---- who fires it, who ends the run, who owns it
  void fire_at(std::int64_t time) {
    now = time;
    if (!take(time)) return;
    RL_ASSERT(memory(RL_INFO) == 1);
    core.look(*this);
  }
  void end_run() {
    runs = false;
    if (!take(kNever)) return;
    Lock::ends_run = rl::thread_index();
    core.end(*this);
    Lock::ends_run = ~0u;
  }
  void destroy() {
    if (chosen<"MUTANT_LOOKS_ONCE">()) {
      if (remove()) {
        while (word.view().firing) rl::yield(1, RL_INFO);
      }
    } else {
      while (remove()) rl::yield(1, RL_INFO);
    }
    if (!chosen<"MUTANT_LEAVES_AT_ONCE">()) core.wait_for_lock_holder();
    memory(RL_INFO) = 0;
    RL_ASSERT(!set.has(RL_INFO));
  }

  void check() {
    RL_ASSERT(!word.view().firing);
    RL_ASSERT((word.view().set != nullptr) == set.has(RL_INFO));
    std::int64_t armed = core.armed_ns_for_tests();
    RL_ASSERT(set.has(RL_INFO) == (armed != kNever));
    if (set.has(RL_INFO)) RL_ASSERT(set.when(RL_INFO) == armed);
    std::int64_t when = core.when_ns();
    RL_ASSERT(!runs || when == kNever || (when <= now && woken) || armed <= when);
  }
};

// Lazily armed for kSoon although it is kLast. The timer fires, and looks again, while the deadline
// moves.
template <std::int64_t first, std::int64_t second>
struct Moved : model::Scenario<2> {
  Host host;
  void before() override {
    host.begin();
    host.core.set(host, kSoon);
    host.core.set(host, kLast);
  }
  void thread(unsigned index) override {
    if (index == 0) {
      host.core.set(host, first);
      host.core.set(host, second);
    } else {
      host.fire_at(kSoon);
      host.fire_at(kLater);
    }
  }
  void after() override {
    if (host.core.when_ns() <= host.now) host.woken = true;  // who moves it there wakes itself
    host.check();
  }
};

// Two move it while the timer fires.
struct MovedByTwo : model::Scenario<3> {
  Host host;
  void before() override {
    host.begin();
    host.core.set(host, kSoon);
    host.core.set(host, kLast);
  }
  void thread(unsigned index) override {
    if (index == 0) host.core.set(host, kLater);
    if (index == 1) host.core.set(host, kLast);
    if (index == 2) host.fire_at(kSoon);
  }
  void after() override { host.check(); }
};

// A plain thread moves it while the run ends. In the next run it is set again.
struct Ends : model::Scenario<2> {
  Host host;
  void before() override {
    host.begin();
    host.core.set(host, kLater);
  }
  void thread(unsigned index) override {
    if (index == 0) {
      host.core.set(host, kSoon);
    } else {
      host.end_run();
    }
  }
  void after() override {
    host.check();
    host.runs = true;
    host.core.set(host, kLast);
    host.check();
  }
};

// The owner goes away while the timer fires and finds the deadline moved.
struct Destroyed : model::Scenario<2> {
  Host host;
  void before() override {
    host.begin();
    host.core.set(host, kSoon);
    host.core.set(host, kLast);
    Lock::record = &host.memory;
  }
  void thread(unsigned index) override {
    if (index == 0) {
      host.destroy();
    } else {
      host.fire_at(kSoon);
    }
  }
  void after() override { Lock::record = nullptr; }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Moved<kLater, kLast>>("moved near and away", model::bounded(4))
      .explore<Moved<kNever, kLater>>("taken away and set", model::bounded(4))
      .explore<MovedByTwo>("moved by two", model::bounded(3))
      .explore<Ends>("the run ends", model::full())
      .explore<Destroyed>("destroyed", model::full())
      .report();
}
