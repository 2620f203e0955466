// Model of [in-place]: threads that wait with their goroutines are handed Ps, let out, and sent
// home when the runtime ends; and successors are woken.
//
// The model mirrors bound.cc (wait_in_place, park_bound, pass_p_to_thread_of, let_out), hand_off.cc
// (wake_successor), world.cc (shut_down) and sysmon_taking.cc (take), sysmon.cc (wait_for_the_end)
// over the product's InPlace and Successor. Queue and channel have locks of their own.
//
// Checked   The thread is woken once, and goes on: with a P, which it alone uses then, without one,
//           or home. Nobody switches to a bound goroutine. Goroutine, flags and P are plain
//           variables. A goroutine that the runtime drops has released the lock of the channel. A
//           successor is woken once, and sees its P.
// Bounds    Three or four threads; preemptions are bounded.
//
// Mutant MUTANT_BOUND_RESET        a goroutine whose thread goes home is not bound any more
// Mutant MUTANT_QUEUED_FIRST       the goroutine is in the queue before its thread says that it
//                                  waits
// Mutant MUTANT_END_UNSEEN         the thread does not look whether the runtime ends before it
//                                  waits
// Mutant MUTANT_NOT_SENT_HOME      the end does not look for threads that wait in place
// Mutant MUTANT_NO_LOCK            who hands a P looks at the flag without the lock
// Mutant MUTANT_WAKES_ANYWAY       who meets the goroutine wakes its thread even if somebody else
//                                  has
// Mutant MUTANT_NO_COMMIT          the commit step is not run if the runtime ends
// Mutant MUTANT_COMMIT_FIRST       the commit step runs before the thread says that it waits
// Mutant MUTANT_TORN_EXCHANGE      a successor is taken out twice
// Mutant MUTANT_RELAXED_RELEASE    a successor's P is not seen by who wakes it
// Mutant MUTANT_RELAXED_ACQUIRE    the same
// Mutant MUTANT_END_FORGETS        sysmon does not look for successors when the runtime ends
#include "model_run.h"

#include "sched/taking/in_place.h"

namespace {

using magpie::base::acquire;
using magpie::base::Guarded;
using magpie::base::relaxed;
using magpie::base::release;
using magpie::sched::Goes;
using magpie::sched::InPlace;
using magpie::sched::Successor;
using model::Atomic;
using model::chosen;

struct P {
  Guarded<int> uses = 0;
  void use() { uses = uses + 1; }
};

struct M {
  InPlace<P> in_place;
  Guarded<P*> handed = nullptr;
  Successor<M> successor;
  rl::generic_event wake_up;
  int wakes = 0;  // the model's own
  M() { wake_up.init(false, false, RL_INFO); }
  ~M() { wake_up.deinit(RL_INFO); }

  void wake() {
    ++wakes;
    wake_up.set(RL_INFO);
  }
  void sleep() { wake_up.wait(false, false, RL_INFO); }
};

struct G {
  Guarded<bool> bound = false;
  Guarded<M*> thread = nullptr;
};

struct Runtime {
  rl::mutex idle_lock;
  Guarded<bool> ending = false;  // guarded by idle_lock

  rl::mutex queue_lock;
  G* queued = nullptr;  // guarded by queue_lock

  M m;  // the thread of g
  G g;
  P p;
  Goes went = Goes::with_p;  // the model's own

  void push(G* ready) {
    queue_lock.lock(RL_INFO);
    queued = ready;
    queue_lock.unlock(RL_INFO);
  }
  G* pop() {
    queue_lock.lock(RL_INFO);
    G* found = std::exchange(queued, nullptr);
    queue_lock.unlock(RL_INFO);
    return found;
  }

  bool get_in_place() {
    idle_lock.lock(RL_INFO);
    bool ends = ending && !chosen<"MUTANT_END_UNSEEN">();
    if (!ends) m.in_place.begin_locked();
    idle_lock.unlock(RL_INFO);
    return !ends;
  }
  Goes sleep_in_place() {
    m.sleep();
    P* handed = nullptr;
    Goes goes = m.in_place.take_what_came(m.handed, handed);
    if (goes == Goes::with_p) handed->use();
    return goes;
  }
  void queue_up() {
    g.bound = true;
    g.thread = &m;
    push(&g);
  }
  // It was preempted, or came in without a P.
  void wait_in_place() {
    bool queued_first = chosen<"MUTANT_QUEUED_FIRST">();
    if (queued_first) queue_up();
    if (!get_in_place()) {
      went = Goes::nowhere;
      return;
    }
    if (!queued_first) queue_up();
    went = sleep_in_place();
    if (went != Goes::nowhere || chosen<"MUTANT_BOUND_RESET">()) g.bound = false;
  }

  // An M with a P. False: it met no goroutine.
  bool meet() {
    G* found = pop();
    if (found == nullptr) return false;
    p.use();
    RL_ASSERT(found->bound);  // else it switches to registers that nobody has saved
    M* its = found->thread;
    bool locks = !chosen<"MUTANT_NO_LOCK">();
    if (locks) idle_lock.lock(RL_INFO);
    bool wakes = its->in_place.hand_locked(its->handed, &p);
    bool ends = ending;
    if (locks) idle_lock.unlock(RL_INFO);
    RL_ASSERT(wakes || ends);  // else the goroutine is lost
    if (wakes || chosen<"MUTANT_WAKES_ANYWAY">()) its->wake();
    return true;
  }
  void let_out() {
    G* found = pop();
    if (found == nullptr) return;
    M* its = found->thread;
    idle_lock.lock(RL_INFO);
    bool wakes = its->in_place.let_out_locked();
    idle_lock.unlock(RL_INFO);
    if (wakes) its->wake();
  }
  void end() {
    idle_lock.lock(RL_INFO);
    ending = true;
    bool home = !chosen<"MUTANT_NOT_SENT_HOME">() && m.in_place.send_home_locked(m.handed);
    if (home) m.wake();
    idle_lock.unlock(RL_INFO);
  }
};

// The runtime ends while one meets the goroutine, and the valve opens.
struct Ends : model::Scenario<4> {
  Runtime rt;
  void thread(unsigned index) override {
    switch (index) {
      case 0:
        return rt.wait_in_place();
      case 1:
        return void(rt.meet());
      case 2:
        return rt.let_out();
      default:
        return rt.end();
    }
  }
  void after() override { RL_ASSERT(rt.m.wakes <= 1); }
};

// A bound goroutine parks in a channel's operation, another wakes it, and the runtime ends.
struct Parks : model::Scenario<3> {
  Runtime rt;
  rl::mutex channel;
  G* waiter = nullptr;  // guarded by channel

  void commit() {
    waiter = &rt.g;
    channel.unlock(RL_INFO);
  }
  void park_bound() {
    channel.lock(RL_INFO);
    rt.g.bound = true;
    rt.g.thread = &rt.m;
    bool commits_first = chosen<"MUTANT_COMMIT_FIRST">();
    if (commits_first) commit();
    bool ends = !rt.get_in_place();
    if (!commits_first && !(ends && chosen<"MUTANT_NO_COMMIT">())) commit();
    if (!ends) rt.went = rt.sleep_in_place();
  }
  void thread(unsigned index) override {
    if (index == 0) return park_bound();
    if (index == 2) return rt.end();
    channel.lock(RL_INFO);
    G* woken = std::exchange(waiter, nullptr);
    channel.unlock(RL_INFO);
    if (woken == nullptr) return;
    rt.push(woken);
    rt.meet();
  }
  void after() override { RL_ASSERT(rt.m.wakes <= 1); }
};

// Sysmon has taken the P of m and hands it to another; m comes in at any time. If the runtime ends
// nobody comes in later.
struct Successors : model::Scenario<3> {
  M m, next;
  P p;
  void wake_successor() {
    M* woken = m.successor.take();
    if (woken == nullptr) return;
    P* its = woken->handed;  // its free_cpu is set
    its->use();
    woken->wake();
  }
  void thread(unsigned index) override {
    if (index == 0) {
      wake_successor();
    } else if (index == 1) {
      next.handed = &p;
      m.successor.set(&next);
      if (!chosen<"MUTANT_END_FORGETS">()) wake_successor();
    } else {
      next.sleep();
      P* its = next.handed;
      its->use();
    }
  }
  void after() override { RL_ASSERT(next.wakes == 1); }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Successors>("a successor", model::bounded(5))
      .explore<Parks>("parks", model::bounded(4))
      .explore<Ends>("ends", model::bounded(3))
      .explore<Ends>("ends", model::random(100'000))
      .report();
}
