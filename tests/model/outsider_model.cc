// Model of [outsider]: run() opens, closes and tears down, twice; plain threads come and go.
//
// Checked   Nobody uses the runtime before it is set up or while it is torn down: the runtime is a
//           plain variable, which run() writes and outsiders read, so Relacy reports any use that
//           is not ordered. An outsider that comes after a look at the visits has changed them by
//           the time at which it is out again.
// Bounds    One outsider that comes twice, and two outsiders that come once: every interleaving.
//
// Mutant MUTANT_WEAK_SEQ_CST      both sides miss each other
// Mutant MUTANT_RELAXED_RELEASE   what the outsider did is not over when run() sees it gone
#include "model_run.h"

#include "sched/run/outsider_gate.h"

namespace {

using magpie::sched::OutsiderGate;

template <int outsiders, int visits, int runs>
struct Gate : model::Scenario<outsiders + 1> {
  OutsiderGate gate;
  rl::var<int> runtime;
  // the model's own
  int looks = 0;    // at the visits so far, by run()
  int visited = 0;  // since the last look

  void before() override { runtime(RL_INFO) = 0; }

  void thread(unsigned index) override {
    if (index == 0) {
      for (int i = 0; i < runs; ++i) run();
    } else {
      for (int i = 0; i < visits; ++i) visit();
    }
  }

  void run() {
    runtime(RL_INFO) = 1;
    const std::uint32_t visits_before = gate.visits();
    ++looks;
    visited = 0;
    gate.open();
    gate.close();
    while (!gate.is_empty()) rl::yield(1, RL_INFO);
    RL_ASSERT(visited == 0 || gate.visits() != visits_before);
    runtime(RL_INFO) = 0;
  }

  void visit() {
    const int looks_before = looks;
    if (!gate.enter()) return;
    RL_ASSERT(runtime(RL_INFO) == 1);
    if (looks == looks_before) ++visited;
    gate.exit();
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Gate<1, 2, 2>>("one outsider comes twice, two runs", model::full())
      .explore<Gate<2, 1, 1>>("two outsiders, one run", model::full())
      .report();
}
