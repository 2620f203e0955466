// Model of [run-queue]: an owner and one or two thieves, a ring of four, batches of up to two.
// Model of [runnext]: the slot ahead of the ring, used by the same.
//
// Checked   Every goroutine is taken exactly once, whoever takes it sees what was written before it
//           was pushed (the payload is a plain variable: Relacy reports an access that is not
//           ordered), and what nobody took is in a queue at the end. looks_empty() is never true
//           while a goroutine is there throughout.
// Bounds    See main(). Relacy does not show a load that sees a later store, so the "No reuse" rule
//           of run_queue.h is explored for interleavings only; its release is argued there.
//
// Mutant MUTANT_RELAXED_RELEASE   the payload is not published
// Mutant MUTANT_RELAXED_ACQUIRE   the payload is not seen
// Mutant MUTANT_BLIND_EXCHANGE    a thief does not compare: goroutines are taken twice
// Mutant MUTANT_NO_FENCE          owner and thief are both at the slot
#include "model_run.h"

#include "base/cpu.h"

// Who spins waits for another thread: Relacy has to be told, or it explores a wait of any length.
namespace magpie::base {
inline void let_others_go_on() { rl::yield(1, RL_INFO); }
}  // namespace magpie::base
#define cpu_relax let_others_go_on
#include "sched/core/run_queue.h"
#undef cpu_relax

namespace magpie::sched {
struct G {
  rl::var<int> payload;
  int taken = 0;  // the model's own: threads of a model take turns
};
}  // namespace magpie::sched

namespace {

using magpie::sched::G;
using magpie::sched::RunQueue;

// What all scenarios share: goroutines, the owner's queue (0) and the thieves' queues.
template <int queue_count>
struct World {
  static constexpr int kMost = 6;
  G goroutines[kMost];
  int made = 0;
  RunQueue queues[queue_count];

  G* make() {
    RL_ASSERT(made < kMost);
    G* g = &goroutines[made++];
    g->payload(RL_INFO) = 7;
    return g;
  }

  void take(G* g) {
    if (g == nullptr) return;
    RL_ASSERT(g->payload(RL_INFO) == 7);
    RL_ASSERT(++g->taken == 1);
    g->payload(RL_INFO) = 8;  // as its owner may
  }

  // The owner's side of queues.cc.
  void put_last(RunQueue& queue, G* g) {
    while (!queue.push(g)) {
      G* half[RunQueue::kHalf];
      std::size_t count = queue.take_half(half);
      for (std::size_t i = 0; i < count; ++i) take(half[i]);  // to the global queue
    }
  }
  void put_next(RunQueue& queue, G* g) {
    if (G* displaced = queue.next.put(g)) put_last(queue, displaced);
  }

  void steal(RunQueue& mine, RunQueue& victim) {
    std::size_t moved = 0;
    take(mine.steal_half(victim, moved));
    RL_ASSERT(moved <= RunQueue::kHalf);
  }
  void steal_next(RunQueue& victim) {
    G* seen = victim.next.peek();
    if (seen != nullptr && victim.next.steal(seen)) take(seen);
  }

  // Nobody runs any more.
  void nothing_is_lost() {
    for (auto& queue : queues) {
      take(queue.next.take());
      while (G* g = queue.pop()) take(g);
      RL_ASSERT(queue.looks_empty());
    }
    for (int i = 0; i < made; ++i) RL_ASSERT(goroutines[i].taken == 1);
  }
};

// The owner pushes and pops; one thief steals.
struct PushPopSteal : model::Scenario<2> {
  World<2> w;
  void thread(unsigned index) override {
    if (index == 0) {
      w.put_last(w.queues[0], w.make());
      w.put_last(w.queues[0], w.make());
      w.take(w.queues[0].pop());
    } else {
      w.steal(w.queues[1], w.queues[0]);
    }
  }
  void after() override { w.nothing_is_lost(); }
};

// The ring is nearly full, wraps around, is reserved in twos and spills, while it is stolen from.
struct FullRing : model::Scenario<2> {
  World<2> w;
  void before() override {
    for (int i = 0; i < 4; ++i) w.put_last(w.queues[0], w.make());
    w.take(w.queues[0].pop());  // reserves two, one stays reserved
  }
  void thread(unsigned index) override {
    if (index == 0) {
      w.put_last(w.queues[0], w.make());
      w.put_last(w.queues[0], w.make());
      w.take(w.queues[0].pop());
      w.take(w.queues[0].pop());
    } else {
      w.steal(w.queues[1], w.queues[0]);
      w.take(w.queues[1].pop());
      w.steal(w.queues[1], w.queues[0]);
    }
  }
  void after() override { w.nothing_is_lost(); }
};

// The slot ahead of the ring: filled, displaced, emptied by owner and thieves.
template <int thieves>
struct Next : model::Scenario<thieves + 1> {
  World<1> w;
  void thread(unsigned index) override {
    RunQueue& queue = w.queues[0];
    if (index == 0) {
      w.put_next(queue, w.make());
      w.put_next(queue, w.make());
      w.take(queue.next.take());
      G* last = w.make();
      w.put_next(queue, last);
      if (queue.next.take_if(last)) w.take(last);
    } else {
      w.steal_next(queue);
      if (thieves == 1) w.steal_next(queue);
    }
  }
  void after() override { w.nothing_is_lost(); }
};

// The owner takes only while no thief is at it; what it did not get it takes later.
struct TakeAtOnce : model::Scenario<2> {
  World<1> w;
  void thread(unsigned index) override {
    RunQueue& queue = w.queues[0];
    if (index == 0) {
      w.put_next(queue, w.make());
      w.take(queue.next.try_take());
      w.put_next(queue, w.make());
      w.take(queue.next.try_take());
    } else {
      w.steal_next(queue);
      w.steal_next(queue);
    }
  }
  void after() override { w.nothing_is_lost(); }
};

// A goroutine moves from the slot to the ring and what displaced it runs: it is in the queue all
// the time.
struct NeverEmpty : model::Scenario<2> {
  World<1> w;
  void before() override { w.put_next(w.queues[0], w.make()); }
  void thread(unsigned index) override {
    if (index == 0) {
      w.put_next(w.queues[0], w.make());
      w.take(w.queues[0].next.take());
    } else {
      RL_ASSERT(!w.queues[0].looks_empty());
    }
  }
  void after() override { w.nothing_is_lost(); }
};

// Two thieves steal from the owner, and one from the other, whose ring is refilled.
struct TwoThieves : model::Scenario<3> {
  World<3> w;
  void before() override {
    for (int i = 0; i < 3; ++i) w.put_last(w.queues[0], w.make());
  }
  void thread(unsigned index) override {
    if (index == 0) {
      w.put_last(w.queues[0], w.make());
      w.take(w.queues[0].pop());
    } else if (index == 1) {
      w.steal(w.queues[1], w.queues[0]);
      w.take(w.queues[1].pop());
      if (w.queues[1].size() == 0) w.steal(w.queues[1], w.queues[0]);
    } else {
      w.steal(w.queues[2], w.queues[1]);
      w.take(w.queues[2].pop());
      w.steal(w.queues[2], w.queues[0]);
    }
  }
  void after() override { w.nothing_is_lost(); }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Next<1>>("the next slot, one thief", model::bounded(3))
      .explore<TakeAtOnce>("next slot: taken at once or not at all", model::bounded(3))
      .explore<Next<2>>("the next slot, two thieves", model::bounded(2))
      .explore<NeverEmpty>("looks_empty", model::bounded(4))
      .explore<PushPopSteal>("push, pop and steal", model::full())
      .explore<FullRing>("a full ring", model::bounded(3))
      .explore<TwoThieves>("two thieves", model::bounded(2))
      .explore<TwoThieves>("two thieves", model::random(200'000))
      .report();
}
