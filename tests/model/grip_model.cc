// Model of [grip]: a P is taken from an M that goes in and out of the runtime.
//
// Checked   M and taker never both use the P (a plain variable), and whoever gets it sees what the other did; an M
//           that lost its P finds out at its next entry, and not before it has lost it.
// Bounds    Two entries and one try to take it, one and two: every interleaving. More: so many preemptions as main() says.
// Stands in What the M does to get a P back: the taker puts it there when it is through.
//
// Mutant MUTANT_NO_FENCE          M and taker miss each other, and both use the P
// Mutant MUTANT_RELAXED_RELEASE   the taker does not see what the M did
// Mutant MUTANT_BLIND_EXCHANGE    the M refuses what was taken already
// Mutant MUTANT_NO_LOOK           the M does not look whether its P was taken
#include "model_run.h"

#include "sched/grip.h"

namespace {

using magpie::base::acquire;
using magpie::base::Atomic;
using magpie::base::relaxed;
using magpie::base::release;
using magpie::sched::Grip;

template <int entries, int tries>
struct Taking : rl::test_suite<Taking<entries, tries>, 2> {
  Grip grip;
  rl::var<int> p;  // what the P is about
  Atomic<int> idle{0};
  rl::var<int> uses;

  void before() {
    p(RL_INFO) = 0;
    uses(RL_INFO) = 0;
    grip.leave();
  }

  void use_p() { p(RL_INFO) = p(RL_INFO) + 1; }

  void m() {
    for (int i = 0; i < entries; ++i) {
      bool has_p = grip.enter() || grip.keep();
#ifdef MUTANT_NO_LOOK
      has_p = true;
#endif
      if (!has_p) {
        RL_ASSERT(grip.is_taken());
        while (idle.load(acquire) == 0) rl::yield(1, RL_INFO);
        idle.store(0, relaxed);
        grip.has_p();
      }
      use_p();
      uses(RL_INFO) = uses(RL_INFO) + 1;
      grip.leave();
    }
  }

  void taker() {
    for (int i = 0; i < tries; ++i) {
      if (!grip.ask()) continue;
      if (grip.is_outside_for_taker() && grip.confirm()) {
        use_p();
        idle.store(1, release);
      } else {
        grip.withdraw();
      }
    }
  }

  void thread(unsigned index) { index == 0 ? m() : taker(); }

  void after() { RL_ASSERT(uses(RL_INFO) == entries); }
};

}  // namespace

int main() {
  return model::Runs()
      .explore<Taking<2, 1>>("two entries, one try", model::full())
      .explore<Taking<1, 2>>("one entry, two tries", model::full())
      .explore<Taking<2, 2>>("two entries, two tries", model::bounded(5))
      .explore<Taking<3, 2>>("three entries, two tries", model::bounded(4))
      .report();
}
