// Model of [fences]: makers ask the kernel and store what it granted, others use what was made.
//
// Checked   Whoever uses what a maker made reads what was granted, whichever maker it was and while
//           the other stores the same.
// Bounds    Two makers and one user: every interleaving.
// Not here  What the fences do: in models both are full fences.
//
// Mutant MUTANT_RELAXED_RELEASE   what is made is passed on by steps that do not order
// Mutant MUTANT_RELAXED_ACQUIRE   the same
// Mutant MUTANT_PREPARED_LATE     a maker passes on what it made before it stores what was granted
#include "model_run.h"

#include "base/fence.h"

namespace {

using magpie::base::acquire;
using magpie::base::Atomic;
using magpie::base::release;
using model::chosen;

struct Makers : model::Scenario<3> {
  magpie::base::detail::FencesGranted granted;
  Atomic<bool> made[2] = {{false}, {false}};

  void thread(unsigned index) override {
    if (index == 2) return use();
    if (chosen<"MUTANT_PREPARED_LATE">()) made[index].store(true, release);
    granted.set(true);
    if (!chosen<"MUTANT_PREPARED_LATE">()) made[index].store(true, release);
  }
  void use() {
    for (Atomic<bool>& each : made) {
      if (each.load(acquire)) RL_ASSERT(granted.light_is_free());
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv).explore<Makers>("two make, one uses", model::full()).report();
}
