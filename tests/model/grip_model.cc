// Model of [grip]: a P is taken from an M that goes in and out of the runtime, and the M is stopped
// by a signal.
//
// Checked   M, taker and whoever gets the P next never use it at the same time (a plain variable),
//           and each sees what the one before did; an M that lost its P finds out at its next
//           entry, or in the signal's handler, waits for one, and gets one. The handler may run
//           anywhere, also inside the runtime.
// Bounds    Two entries and one try to take it, one and two: every interleaving. More: so many
//           preemptions as main() says.
// Stands in The queue that a goroutine waits in, and the sleep: one flag each.
//
// Mutant MUTANT_NO_FENCE          M and taker miss each other, and both use the P
// Mutant MUTANT_RELAXED_RELEASE   the taker does not see what the M did
// Mutant MUTANT_BLIND_EXCHANGE    the M refuses what was taken already
// Mutant MUTANT_NO_LOOK           the M does not look whether its P was taken
// Mutant MUTANT_STOPS_INSIDE      the handler does not look whether the M is inside
// Mutant MUTANT_KEEPS_GRIP        the M gives its P away and does not say that it has none
#include "model_run.h"

#include "sched/taking/grip.h"

namespace {

using magpie::base::acquire;
using magpie::base::Atomic;
using magpie::base::relaxed;
using magpie::base::release;
using magpie::sched::Grip;
using model::chosen;

// An M and its P. What it does to get a P back is the scenario's.
struct Thread {
  Grip grip;
  rl::var<int> p;  // what the P is about

  void start() {
    p(RL_INFO) = 0;
    grip.leave();
  }
  void use_p() { p(RL_INFO) = p(RL_INFO) + 1; }

  template <class WaitForP>
  void enter_runtime(WaitForP wait_for_p) {
    if (grip.enter() || chosen<"MUTANT_NO_LOOK">() || grip.keep()) return;
    RL_ASSERT(grip.is_taken());
    wait_for_p();
    grip.set_own();
  }

  [[nodiscard]] bool take() {
    if (!grip.ask()) return false;
    if (grip.is_outside_for_taker() && grip.confirm()) return true;
    grip.withdraw();
    return false;
  }
};

template <int entries, int tries>
struct Taking : model::Scenario<2> {
  Thread m;
  Atomic<int> idle{0};
  rl::var<int> uses;

  void before() override {
    m.start();
    uses(RL_INFO) = 0;
  }

  void run_m() {
    for (int i = 0; i < entries; ++i) {
      m.enter_runtime([this] {
        while (idle.load(acquire) == 0) rl::yield(1, RL_INFO);
        idle.store(0, relaxed);
      });
      m.use_p();
      uses(RL_INFO) = uses(RL_INFO) + 1;
      m.grip.leave();
    }
  }

  void run_taker() {
    for (int i = 0; i < tries; ++i) {
      if (!m.take()) continue;
      m.use_p();
      idle.store(1, release);
    }
  }

  void thread(unsigned index) override { index == 0 ? run_m() : run_taker(); }
  void after() override { RL_ASSERT(uses(RL_INFO) == entries); }
};

// Sysmon asks, and leaves that to the M to find at an entry. Later it withdraws, and takes the P.
template <int entries>
struct AskedBefore : Taking<entries, 1> {
  void run_taker() {
    if (this->m.grip.ask()) {
      rl::yield(1, RL_INFO);
      this->m.grip.withdraw();
    }
    Taking<entries, 1>::run_taker();
  }

  void thread(unsigned index) override { index == 0 ? this->run_m() : run_taker(); }
};

// The P goes to another M, which passes it on to the goroutine that waits for it.
struct Stopped : model::Scenario<3> {
  Thread m;
  Atomic<int> with_other{0};
  Atomic<int> taker_is_through{0};
  Atomic<int> queued{0};
  Atomic<int> handed{0};

  void before() override { m.start(); }

  void wait_for_p() {
    queued.store(1, release);
    while (handed.load(acquire) == 0) rl::yield(1, RL_INFO);
    handed.store(0, relaxed);
  }

  void on_signal() {
    if (m.grip.is_inside() && !chosen<"MUTANT_STOPS_INSIDE">()) return;
    m.enter_runtime([this] { wait_for_p(); });
    m.grip.leave();
  }

  void run_m() {
    on_signal();
    m.enter_runtime([this] { wait_for_p(); });
    on_signal();
    m.use_p();
    m.grip.leave();
    on_signal();
  }

  void run_other() {
    while (with_other.load(acquire) == 0) {
      if (taker_is_through.load(acquire) == 2) return;
      rl::yield(1, RL_INFO);
    }
    m.use_p();
    while (queued.load(acquire) == 0) {
      if (m_is_through.load(acquire) != 0) return;
      rl::yield(1, RL_INFO);
    }
    handed.store(1, release);
  }
  Atomic<int> m_is_through{0};

  void thread(unsigned index) override {
    if (index == 0) {
      run_m();
      m_is_through.store(1, release);
    } else if (index == 1) {
      bool taken = m.take();
      if (taken) with_other.store(1, release);
      taker_is_through.store(taken ? 1 : 2, release);
    } else {
      run_other();
    }
  }
};

// The M gives its P away itself, while the taker tries: only one of them may. Then it comes back
// for another.
struct GivenAway : model::Scenario<2> {
  Thread m;
  Atomic<int> idle{0};
  Atomic<int> holder{1};  // 1: the M. As P::holder

  void before() override { m.start(); }

  bool take_idle() {
    int now = 1;
    return idle.compare_exchange_strong(now, 0, magpie::base::acq_rel, relaxed);
  }
  void wait_for_p() {
    while (!take_idle()) rl::yield(1, RL_INFO);
    holder.store(1, relaxed);
  }

  void run_m() {
    m.enter_runtime([this] { wait_for_p(); });
    m.use_p();
    holder.store(0, relaxed);
    if (!chosen<"MUTANT_KEEPS_GRIP">()) m.grip.set_taken();
    idle.store(1, release);
    m.grip.leave();
    m.enter_runtime([this] { wait_for_p(); });
    m.use_p();
    m.grip.leave();
  }

  void run_taker() {
    if (!m.grip.ask()) return;
    if (m.grip.is_outside_for_taker() && holder.load(relaxed) == 1 && m.grip.confirm()) {
      m.use_p();
      idle.store(1, release);
    } else {
      m.grip.withdraw();
    }
    // Whoever gets a P that was given away uses it.
    if (!take_idle()) return;
    m.use_p();
    idle.store(1, release);
  }

  void thread(unsigned index) override { index == 0 ? run_m() : run_taker(); }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Taking<2, 1>>("two entries, one try", model::full())
      .explore<Taking<1, 2>>("one entry, two tries", model::full())
      .explore<Taking<2, 2>>("two entries, two tries", model::bounded(5))
      .explore<Taking<3, 2>>("three entries, two tries", model::bounded(4))
      .explore<AskedBefore<2>>("two entries, asked before", model::bounded(5))
      .explore<Stopped>("stopped by a signal", model::bounded(3))
      .explore<GivenAway>("gives its P away", model::full())
      .report();
}
