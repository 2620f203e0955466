// Model of [event]: others set an event while its owner waits for it, or gives up.
//
// Checked   The owner does not sleep for ever; after wait() it sees what was written before each
//           set() that it will not be woken for again.
// Bounds    One setter: every interleaving. Two: at most five preemptions, and random executions.
// Stands in The kernel's futex (model_futex.h); time comes at any moment, or never.
//
// Mutant MUTANT_RELAXED_RELEASE   the owner does not see what the setter wrote
// Mutant MUTANT_RELAXED_ACQUIRE   the same
// Mutant MUTANT_BLIND_EXCHANGE    the owner clears what it has not seen
// Mutant MUTANT_NO_COMPARE        the kernel lets the owner sleep although the event is set
// Mutant MUTANT_NO_WAKE           set() does not wake the sleeper
#include "model_run.h"

#include "base/event.h"

namespace {

using magpie::base::Atomic;
using magpie::base::Event;
using magpie::base::relaxed;

constexpr std::int64_t kLongAgoNs = 0;  // the model's kernel decides whether time comes

// Each setter says something and sets the event once. The owner waits until it has heard all.
template <unsigned setters>
struct Heard : model::Scenario<1 + setters> {
  model::Futex kernel;
  Event event;
  Atomic<int> said[setters];  // relaxed: only the event orders

  void thread(unsigned index) override {
    if (index != 0) {
      said[index - 1].store(1, relaxed);
      event.set();
      return;
    }
    while (!has_heard_all()) event.wait();
  }
  bool has_heard_all() {
    for (Atomic<int>& one : said) {
      if (one.load(relaxed) == 0) return false;
    }
    return true;
  }
};

// What was written before set() is seen after wait().
struct Ordered : model::Scenario<2> {
  model::Futex kernel;
  Event event;
  rl::var<int> said;

  void thread(unsigned index) override {
    if (index == 1) {
      said(RL_INFO) = 1;
      event.set();
    } else {
      event.wait();
      RL_ASSERT(said(RL_INFO) == 1);
    }
  }
};

// The owner gives up, or does not, and then waits without end for what was not there yet.
struct GivesUp : model::Scenario<2> {
  model::Futex kernel;
  Event event;
  rl::var<int> said;

  void thread(unsigned index) override {
    if (index == 1) {
      said(RL_INFO) = 1;
      event.set();
      return;
    }
    if (!event.wait_until(kLongAgoNs)) event.wait();
    RL_ASSERT(said(RL_INFO) == 1);
    RL_ASSERT(!event.is_set());
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Ordered>("what was said is heard", model::full())
      .explore<GivesUp>("the owner gives up", model::full())
      .explore<Heard<1>>("one sets it", model::full())
      .explore<Heard<2>>("two set it", model::bounded(5))
      .explore<Heard<2>>("two set it", model::random(200'000))
      .report();
}
