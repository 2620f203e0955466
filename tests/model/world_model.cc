// Model of [world]: the world is stopped, changed and started, and ends, while others run, rest,
// lose their Ps and come back.
//
// The model mirrors world.cc, procs.cc (set_procs, refresh_procs), find_work.cc (find_work),
// rest.cc (lie_down), hand_off.cc (let_go, take_idle_p, wait_for_p) and wake.cc (start_thread_for,
// do_without_thread) over the product's WorldPhase, with base::Event in it.
//
// Checked   Whoever has stopped the world is alone: nobody uses a P meanwhile, and each sees what
//           the one before did with it (plain variables). When nobody does anything any more no
//           goroutine is left in a queue. After the end nobody sleeps.
// Bounds    Two or three threads, two Ps; preemptions are bounded. There are as many Ms as Ps, and
//           no further thread can be had.
// Stands in Sysmon, which tries again if a P is idle although goroutines wait: an M that goes to
//           sleep without a P looks.
//
// Mutant MUTANT_BLIND_EXCHANGE    two have the right to stop the world
// Mutant MUTANT_RELAXED_RELEASE   the stopper does not see what was done with the Ps
// Mutant MUTANT_RELAXED_ACQUIRE   the same
// Mutant MUTANT_NOT_COUNTED       an M that leaves its P does not say so
// Mutant MUTANT_LET_GO_IDLE       a P that was taken from a blocked thread becomes idle although
//                                 the world stops
// Mutant MUTANT_LIES_DOWN         an M that rests does not look again, under the lock, whether the
//                                 world stops
// Mutant MUTANT_LISTED_LATE       an M that leaves gets on the list of sleeping ones after the
//                                 unlock
// Mutant MUTANT_START_FORGETS     who starts the world finds no thread for Ps that have goroutines
// Mutant MUTANT_KEEPS_QUEUE       the goroutines of a P that is removed stay there
// Mutant MUTANT_END_UNASKED       the end does not ask for the right
// Mutant MUTANT_END_UNSEEN        an M that leaves does not look whether it is for good
#include "model_run.h"

#include "model_futex.h"
#include "sched/run/world_phase.h"

namespace {

using magpie::base::Guarded;
using magpie::sched::WorldPhase;
using model::chosen;

struct P {
  Guarded<int> queued = 0;  // goroutines in its queue
};

struct M {
  P* p = nullptr;
  Guarded<P*> handed = nullptr;
  rl::generic_event wake_up;
  M() { wake_up.init(false, false, RL_INFO); }
  ~M() { wake_up.deinit(RL_INFO); }
};

struct Runtime {
  static constexpr int kPs = 2;

  model::Futex kernel;
  WorldPhase world;
  P ps[kPs];
  M ms[kPs];
  int in_use = kPs;  // whoever has stopped the world

  rl::mutex lock;
  // guarded by lock
  P* idle[kPs];
  int idle_count = 0;
  M* sleeping[kPs];
  int sleepers = 0;
  Guarded<int> global = 0;

  // the model's own: threads take turns
  int awake;
  bool over = false;
  bool stopped = false;

  explicit Runtime(int threads) : awake(threads) {
    for (int i = 0; i < kPs; ++i) ms[i].p = &ps[i];
  }

  // ---- wake.cc

  void take_back_locked(P* p) {
    if (!world.give_to_stopper_locked()) idle[idle_count++] = p;
  }
  void start_thread_for(P* p) {
    lock.lock(RL_INFO);
    M* m = sleepers > 0 ? sleeping[--sleepers] : nullptr;
    if (m == nullptr) {  // do_without_thread()
      global = global + p->queued;
      p->queued = 0;
      take_back_locked(p);
    }
    lock.unlock(RL_INFO);
    if (m != nullptr) wake(*m, p);
  }
  void wake(M& m, P* p) {
    ++awake;
    m.handed = p;
    m.wake_up.set(RL_INFO);
  }
  void look_for_others() {
    lock.lock(RL_INFO);
    bool can = !world.stopping() && idle_count > 0 && sleepers > 0 && global > 0;
    P* p = can ? idle[--idle_count] : nullptr;
    lock.unlock(RL_INFO);
    if (p != nullptr) start_thread_for(p);
  }
  // False: all is over, or the runtime ends.
  bool sleep(M& m) {
    if (--awake == 0) {
      RL_ASSERT(!world.ending());
      over = true;
      for (M& each : ms) each.wake_up.set(RL_INFO);
    }
    m.wake_up.wait(false, false, RL_INFO);
    if (over) return false;
    m.p = m.handed;
    m.handed = nullptr;
    return m.p != nullptr;
  }

  // ---- world.cc

  void stop(M* self) {
    lock.lock(RL_INFO);
    world.begin_stop_locked();
    auto held = static_cast<std::uint32_t>(in_use - idle_count - (self != nullptr ? 1 : 0));
    idle_count = 0;
    bool must_wait = world.must_wait_locked(held);
    lock.unlock(RL_INFO);
    if (must_wait) world.wait_until_stopped();
    RL_ASSERT(!stopped);
    stopped = true;
  }
  bool leave(M& m) {
    lock.lock(RL_INFO);
    bool ends = world.ending() && !chosen<"MUTANT_END_UNSEEN">();
    if (ends || !world.stopping()) {
      lock.unlock(RL_INFO);
      return !ends;
    }
    P* p = std::exchange(m.p, nullptr);
    if (!chosen<"MUTANT_NOT_COUNTED">()) take_back_locked(p);
    bool listed_late = chosen<"MUTANT_LISTED_LATE">();
    if (!listed_late) sleeping[sleepers++] = &m;
    lock.unlock(RL_INFO);
    if (listed_late) {
      lock.lock(RL_INFO);
      sleeping[sleepers++] = &m;
      lock.unlock(RL_INFO);
    }
    return sleep(m);
  }
  void start(M* self) {
    stopped = false;
    P* with_work[kPs];
    int count = 0;
    lock.lock(RL_INFO);
    world.start_locked();
    for (int i = in_use - 1; i >= 0; --i) {
      P* p = &ps[i];
      if (self != nullptr && p == self->p) continue;
      if (p->queued == 0 || chosen<"MUTANT_START_FORGETS">()) {
        idle[idle_count++] = p;
      } else {
        with_work[count++] = p;
      }
    }
    lock.unlock(RL_INFO);
    while (count > 0) start_thread_for(with_work[--count]);
    look_for_others();
  }
  void end() {
    lock.lock(RL_INFO);
    world.end_locked();
    while (sleepers > 0) wake(*sleeping[--sleepers], nullptr);
    lock.unlock(RL_INFO);
  }

  // ---- procs.cc; `self` holds a P, or is null

  void change_procs(M* self, int n) {
    for (P& p : ps) p.queued = p.queued + 0;  // all are ours
    for (int i = n; i < in_use; ++i) {
      if (chosen<"MUTANT_KEEPS_QUEUE">()) break;
      lock.lock(RL_INFO);
      global = global + ps[i].queued;
      lock.unlock(RL_INFO);
      ps[i].queued = 0;
    }
    in_use = n;
    if (self != nullptr && self->p == &ps[kPs - 1] && n < kPs) self->p = &ps[0];
  }
  void set_procs_with_right(M* self, int n) {
    stop(self);
    change_procs(self, n);
    start(self);
    world.unlock();
  }
  // A goroutine. False: its M has left.
  bool set_procs(M& m, int n) {
    while (!world.try_lock()) {
      if (!yield(m)) return false;
    }
    set_procs_with_right(&m, n);
    return true;
  }
  bool yield(M& m) {
    if (world.stopping()) return leave(m);
    rl::yield(1, RL_INFO);
    return true;
  }
  // The maker.
  void refresh_procs(int n) {
    if (world.try_lock()) set_procs_with_right(nullptr, n);
  }

  // ---- find_work.cc

  bool take(M& m) {
    RL_ASSERT(!stopped);
    if (m.p->queued > 0) {
      m.p->queued = m.p->queued - 1;
      return true;
    }
    lock.lock(RL_INFO);
    bool found = global > 0;
    if (found) global = global - 1;
    lock.unlock(RL_INFO);
    return found;
  }
  bool rest(M& m) {
    lock.lock(RL_INFO);
    bool stops = world.stopping() && !chosen<"MUTANT_LIES_DOWN">();
    if (stops || global > 0) {
      lock.unlock(RL_INFO);
      return true;
    }
    idle[idle_count++] = std::exchange(m.p, nullptr);
    sleeping[sleepers++] = &m;
    lock.unlock(RL_INFO);
    return sleep(m);
  }
  void run(M& m) {
    for (;;) {
      if (world.stopping() && !leave(m)) return gone();
      if (!take(m) && !rest(m)) return gone();
    }
  }
  void gone() {
    if (!over) --awake;
  }
  // A thread that is no M, or whose M's part is through.
  void done() {
    if (--awake != 0 || world.ending()) return;
    over = true;
    for (M& each : ms) each.wake_up.set(RL_INFO);
  }

  // ---- bound.cc, entry.cc

  // Sysmon has taken it.
  void let_go(P* p) {
    bool queued = p->queued > 0;
    lock.lock(RL_INFO);
    if (world.stopping()) queued = false;
    bool to_idle = !queued && chosen<"MUTANT_LET_GO_IDLE">();
    if (to_idle) idle[idle_count++] = p;
    if (!to_idle && !queued) take_back_locked(p);
    lock.unlock(RL_INFO);
    if (queued) return start_thread_for(p);
    look_for_others();
  }
  // Its P was taken. It takes an idle one, or its goroutine queues and it sleeps. False: it has
  // left.
  bool come_back(M& m) {
    lock.lock(RL_INFO);
    if (world.ending()) {
      lock.unlock(RL_INFO);
      return false;
    }
    if (!world.stopping() && idle_count > 0) {
      m.p = idle[--idle_count];
      lock.unlock(RL_INFO);
      return true;
    }
    global = global + 1;
    sleeping[sleepers++] = &m;
    lock.unlock(RL_INFO);
    look_for_others();
    return sleep(m);
  }

  void check() {
    if (world.ending()) return;
    RL_ASSERT(global == 0);
    for (P& p : ps) RL_ASSERT(p.queued == 0);
  }
};

// One stops the world and goes on with one P, while the other runs what is in its queue and rests.
// So does the maker.
struct Change : model::Scenario<3> {
  Runtime rt{3};
  void before() override {
    for (P& p : rt.ps) p.queued = 1;
  }
  void thread(unsigned index) override {
    if (index == 2) {
      rt.refresh_procs(1);
      rt.done();
    } else {
      rt.run(rt.ms[index]);
    }
  }
  void after() override { rt.check(); }
};

// Two stop the world.
struct Two : model::Scenario<2> {
  Runtime rt{2};
  void before() override { rt.ps[1].queued = 1; }
  void thread(unsigned index) override {
    M& m = rt.ms[index];
    if (!rt.set_procs(m, index == 0 ? 1 : 2)) return rt.gone();
    rt.run(m);
  }
  void after() override { rt.check(); }
};

// The P of a thread that blocks is given back by sysmon, with a goroutine in its queue, and the
// thread comes back.
struct Blocked : model::Scenario<3> {
  Runtime rt{3};
  void before() override {
    rt.ps[1].queued = 1;
    rt.ms[1].p = nullptr;
  }
  void thread(unsigned index) override {
    if (index == 2) {
      rt.let_go(&rt.ps[1]);
      rt.done();
      return;
    }
    M& m = rt.ms[index];
    bool goes_on = index == 0 ? rt.set_procs(m, 2) : rt.come_back(m);
    if (!goes_on) return rt.gone();
    rt.run(m);
  }
  void after() override { rt.check(); }
};

// Main ends the runtime while others stop the world, or run and rest.
struct Ends : model::Scenario<3> {
  Runtime rt{3};
  void before() override { rt.ps[1].queued = 1; }
  void thread(unsigned index) override {
    if (index == 2) {
      rt.refresh_procs(2);
      rt.done();
      return;
    }
    M& m = rt.ms[index];
    if (index == 0) {
      bool asks = !chosen<"MUTANT_END_UNASKED">();
      while (asks && !rt.world.try_lock_for_end()) {
        if (!rt.yield(m)) return rt.gone();
      }
      rt.end();
    }
    rt.run(m);
  }
  void after() override { rt.check(); }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Two>("two stop it", model::bounded(4))
      .explore<Change>("stopped and changed", model::bounded(3))
      .explore<Blocked>("a P is taken", model::bounded(3))
      .explore<Ends>("the end", model::bounded(3))
      .report();
}
