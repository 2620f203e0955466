// Model of [announce]: some announce their records, again and again, while one listens.
//
// Checked   After the last announcement the listener looks at what it is about: it has seen the
//           newest of each teller. Each record is on the list once; its link is never used by both
//           sides at a time.
// Bounds    One teller: every interleaving. Two: at most three preemptions, and random executions.
//
// Mutant MUTANT_RELAXED_RELEASE   the listener does not see what it is about, nor the link
// Mutant MUTANT_RELAXED_ACQUIRE   the same
// Mutant MUTANT_TORN_EXCHANGE     the listener says by a plain store that it has heard
// Mutant MUTANT_TOLD_FIRST        a teller announces before it says what it is about
// Mutant MUTANT_ALWAYS_PUSHES     a teller does not look whether its record is on the list
#include "model_run.h"

#include "sched/taking/announcements.h"

namespace {

using magpie::base::acq_rel;
using magpie::base::acquire;
using magpie::base::Atomic;
using magpie::base::relaxed;
using magpie::base::release;
using model::chosen;

struct Teller {
  magpie::sched::Announcement<Teller> announcement;
  Atomic<int> about{0};  // relaxed: only the protocol orders
  rl::var<int> heard;    // the listener's
};

template <unsigned tellers>
struct Telling : model::Scenario<1 + tellers> {
  static constexpr int kTimes = 2;
  magpie::sched::Announcements<Teller> list;
  Teller teller[tellers];
  Atomic<int> done{0};

  void before() override {
    for (Teller& each : teller) each.heard(RL_INFO) = 0;
  }
  void thread(unsigned index) override {
    if (index != 0) return tell(teller[index - 1]);
    listen();
    while (done.load(acquire) != tellers) rl::yield(1, RL_INFO);
    listen();
    for (Teller& each : teller) RL_ASSERT(each.heard(RL_INFO) == kTimes);
  }
  void tell(Teller& mine) {
    for (int i = 1; i <= kTimes; ++i) {
      if (chosen<"MUTANT_ALWAYS_PUSHES">()) mine.announcement.announced.store(false, release);
      if (chosen<"MUTANT_TOLD_FIRST">()) list.announce(&mine);
      mine.about.store(i, relaxed);
      if (!chosen<"MUTANT_TOLD_FIRST">()) list.announce(&mine);
    }
    done.fetch_add(1, acq_rel);
  }
  void listen() {
    list.hear([](Teller* its) { its->heard(RL_INFO) = its->about.load(relaxed); });
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Telling<1>>("one tells", model::full())
      .explore<Telling<2>>("two tell", model::bounded(3))
      .explore<Telling<2>>("two tell", model::random(200'000))
      .report();
}
