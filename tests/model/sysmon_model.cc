// Model of [sysmon-sleep]: sysmon falls asleep while others take idle Ps, put goroutines out of
// sight, leave the timer duty, find no thread, and stop the world.
//
// The model mirrors sysmon.cc (is_needed_by_nobody), wake.cc (start_searcher), hand_off.cc
// (do_without_thread), queues.cc (put_in_inbox), bound.cc (begin_with), find_work.cc (rest,
// hand_on_duty) and world.cc (stop, start), over the product's SysmonSleep, Search, TimerDuty and
// Grip. Queues and inboxes are numbers that are changed by relaxed steps, so that only the protocol
// orders anything.
//
// Checked   If sysmon sleeps in the end, and nobody has woken it: a P is idle, nothing is in a
//           queue or out of sight, the world is not stopped, and somebody has the timer duty over
//           the timer.
// Bounds    Two or three threads; preemptions are bounded. Sysmon falls asleep once.
// Stands in Sysmon's event ([event]): it sleeps, or has been woken.
//
// Mutant MUTANT_NO_FENCE         taker and sysmon miss each other
// Mutant MUTANT_NO_SECOND_LOOK   sysmon does not look again after it said that it sleeps
// Mutant MUTANT_BEGINS_SILENT    whoever begins to hold a P does not look whether sysmon sleeps
// Mutant MUTANT_NO_THREAD_SILENT whoever finds no thread for a P does not look
// Mutant MUTANT_STOP_SILENT      who stops the world and waits does not wake sysmon
// Mutant MUTANT_START_SILENT     who starts the world does not look whether sysmon sleeps
// Mutant MUTANT_QUEUES_UNSEEN    sysmon does not look at the queues
// Mutant MUTANT_INBOX_UNSEEN     sysmon does not look at what is out of sight
// Mutant MUTANT_DUTY_UNSEEN      sysmon does not look at the timer duty
// Mutant MUTANT_INSIDE_UNSEEN    sysmon does not look whether holders of Ps are inside
// Mutant MUTANT_ONE_FENCE        sysmon counts the idle Ps after it has looked at their holders
#include "model_run.h"

#include "sched/rest/search.h"
#include "sched/rest/timer_duty.h"
#include "sched/taking/grip.h"
#include "sched/taking/sysmon_sleep.h"

namespace {

using magpie::base::acquire;
using magpie::base::relaxed;
using magpie::base::release;
using magpie::sched::Grip;
using magpie::sched::Search;
using magpie::sched::SysmonSleep;
using magpie::sched::TimerDuty;
using model::Atomic;
using model::chosen;

constexpr std::int64_t kFarAway = 10;

struct M {
  Grip grip;
};
struct P {
  Atomic<M*> holder{nullptr};
  Atomic<int> inbox{0};
};

struct Runtime {
  static constexpr std::uint32_t kMostPs = 3;

  Search search;
  TimerDuty timer_duty;
  SysmonSleep sleep;
  Atomic<int> queue{0};
  Atomic<int> timers{0};  // there is one, far away
  Atomic<bool> stopping{false};
  Atomic<std::uint32_t> procs;
  P ps[kMostPs];

  rl::mutex lock;
  // guarded by lock
  P* idle[kMostPs] = {};
  int idle_count = 0;

  rl::generic_event event;
  // the model's own: threads take turns
  bool sleeps = false, woken = false;

  explicit Runtime(std::uint32_t count) : procs(count) { event.init(false, false, RL_INFO); }
  ~Runtime() { event.deinit(RL_INFO); }

  void push_idle_locked(P* p) {
    idle[idle_count++] = p;
    search.add_idle();
  }
  // Before the threads start.
  void hold(P& p, M& m) { p.holder.store(&m, relaxed); }

  void wake_sysmon() {
    woken = true;
    event.set(RL_INFO);
  }
  void wake_sysmon_if_asleep() {
    if (sleep.is_asleep()) wake_sysmon();
  }

  // ---- sysmon.cc

  bool some_are_inside(std::uint32_t quiet) {
    if (chosen<"MUTANT_INSIDE_UNSEEN">()) return false;
    std::uint32_t count = procs.load(relaxed);
    for (std::uint32_t i = 0; i < count; ++i) {
      M* m = ps[i].holder.load(acquire);
      if (m != nullptr && m->grip.is_outside()) ++quiet;
    }
    return quiet != count;
  }
  bool has_inbox() {
    if (chosen<"MUTANT_INBOX_UNSEEN">()) return false;
    for (P& p : ps) {
      if (p.inbox.load(relaxed) != 0) return true;
    }
    return false;
  }
  bool is_needed_by_nobody(std::uint32_t idle_now) {
    bool queued = !chosen<"MUTANT_QUEUES_UNSEEN">() && queue.load(acquire) != 0;
    bool quiet = idle_now != 0 && !some_are_inside(idle_now) && !stopping.load(relaxed) &&
                 !queued && !has_inbox();
    if (!quiet) return false;
    return timers.load(relaxed) == 0 || chosen<"MUTANT_DUTY_UNSEEN">() ||
           timer_duty.covers(kFarAway);
  }
  void fall_asleep() {
    auto count_idle = [&] { return search.view().idle; };
    if (!is_needed_by_nobody(count_idle())) return;
    sleep.sleep_unless_needed(
        [&] { return chosen<"MUTANT_ONE_FENCE">() ? 0 : count_idle(); },
        [&](std::uint32_t idle_now) {
          if (chosen<"MUTANT_NO_SECOND_LOOK">()) return false;
          return !is_needed_by_nobody(chosen<"MUTANT_ONE_FENCE">() ? count_idle() : idle_now);
        },
        [&] {
          sleeps = true;
          event.wait(false, false, RL_INFO);
        });
  }

  // ---- takers

  P* pop_idle() {
    lock.lock(RL_INFO);
    P* p = idle_count > 0 && !stopping.load(relaxed) ? idle[--idle_count] : nullptr;
    if (p != nullptr) search.remove_idle();
    lock.unlock(RL_INFO);
    return p;
  }
  void begin_with(M& m, P* p) {
    p->holder.store(&m, release);
    if (!chosen<"MUTANT_BEGINS_SILENT">()) wake_sysmon_if_asleep();
  }
  void rest(P& p) {
    lock.lock(RL_INFO);
    p.holder.store(nullptr, relaxed);
    idle[idle_count++] = &p;
    search.rest(Search::Was::not_searching);
    lock.unlock(RL_INFO);
    search.before_second_look();
  }

  void check() {
    if (!sleeps || woken) return;
    RL_ASSERT(idle_count != 0 && !stopping.peek());
    RL_ASSERT(queue.peek() == 0);
    for (P& p : ps) RL_ASSERT(p.inbox.peek() == 0);
    RL_ASSERT(timers.peek() == 0 || timer_duty.covers(kFarAway));
  }
};

// What all have: thread 0 is sysmon.
template <unsigned threads>
struct WithSysmon : model::Scenario<threads> {
  Runtime rt;
  M ms[2];
  explicit WithSysmon(std::uint32_t procs) : rt(procs) {}
  virtual void other(unsigned index) = 0;
  void thread(unsigned index) override {
    if (index == 0) return rt.fall_asleep();
    other(index);
    if (--others == 0) rt.event.set(RL_INFO);  // all is over: nobody wakes it
  }
  unsigned others = threads - 1;
  void after() override { rt.check(); }
};

// A plain thread makes a goroutine ready. The thread that gets the idle P runs it, for ever; or
// there is none.
template <bool has_thread>
struct Publish : WithSysmon<2> {
  Publish() : WithSysmon<2>(2) {}
  void before() override {
    ms[0].grip.leave();
    rt.hold(rt.ps[0], ms[0]);
    rt.push_idle_locked(&rt.ps[1]);
  }
  void other(unsigned) override {
    rt.queue.fetch_add(1, release);
    if (!rt.search.try_book_searcher()) return;
    P* p = rt.pop_idle();
    if (p == nullptr) return rt.search.stop();
    if (!has_thread) return do_without_thread(p);
    rt.begin_with(ms[1], p);
    rt.queue.fetch_sub(1, relaxed);
    rt.search.stop();
    ms[1].grip.leave();
  }
  void do_without_thread(P* p) {
    rt.lock.lock(RL_INFO);
    rt.search.stop();
    rt.push_idle_locked(p);
    rt.lock.unlock(RL_INFO);
    if (!chosen<"MUTANT_NO_THREAD_SILENT">()) rt.wake_sysmon_if_asleep();
  }
};

// An M wakes goroutines and puts them in its inbox, as no P is idle, and runs another that blocks.
// One P goes idle meanwhile; it may have been idle before.
struct OutOfSight : WithSysmon<3> {
  OutOfSight() : WithSysmon<3>(2) {}
  void before() override {
    ms[0].grip.leave();
    rt.hold(rt.ps[0], ms[0]);
    rt.push_idle_locked(&rt.ps[1]);
  }
  void other(unsigned index) override {
    if (index == 1) {
      if (!ms[0].grip.enter()) return;
      put_in_inbox();
      ms[0].grip.leave();
    } else {
      P* p = rt.pop_idle();
      if (p == nullptr) return;
      rt.begin_with(ms[1], p);
      rt.rest(*p);
    }
  }
  void put_in_inbox() {
    Search::View view = rt.search.view();
    if (view.idle == 0 && view.searching == 0) {
      rt.ps[0].inbox.store(1, relaxed);
      return;
    }
    rt.queue.fetch_add(1, release);
    if (!rt.search.try_book_searcher()) return;
    rt.search.stop();
    P* p = rt.pop_idle();
    if (p == nullptr) return;  // who has it looks at the queue before it sleeps: see after()
    rt.begin_with(ms[1], p);
    rt.queue.fetch_sub(1, relaxed);
  }
  void after() override {
    // [search-or-sleep] is none of this model's: whoever rested has taken it.
    rt.queue.store(0, relaxed);
    rt.check();
  }
};

// The keeper of the timer duty gets a P from the network, and leaves a timer that is far away to
// sysmon. Another P is idle.
struct KeeperGoes : WithSysmon<2> {
  KeeperGoes() : WithSysmon<2>(2) {}
  void before() override {
    for (P* p : {&rt.ps[0], &rt.ps[1]}) rt.push_idle_locked(p);
    rt.timers.store(1, relaxed);
    (void)rt.timer_duty.take(kFarAway);
  }
  void other(unsigned) override {
    P* p = rt.pop_idle();
    rt.begin_with(ms[0], p);
    rt.timer_duty.end(kFarAway);
    ms[0].grip.leave();
  }
};

// The world is stopped, maybe waits for the one that holds the other P, and goes on with fewer Ps.
template <bool waits>
struct Stop : WithSysmon<2> {
  Stop() : WithSysmon<2>(waits ? 3 : 2) {}
  void before() override {
    // Who stops it has P 0, and nobody else gets it. The holder of P 2 blocks.
    ms[0].grip.leave();
    rt.hold(rt.ps[0], ms[0]);
    rt.push_idle_locked(&rt.ps[1]);
    if (!waits) return;
    ms[1].grip.leave();
    rt.hold(rt.ps[2], ms[1]);
  }
  void other(unsigned) override {
    if (!ms[0].grip.enter()) return;
    rt.lock.lock(RL_INFO);
    rt.stopping.store(true, relaxed);
    rt.idle_count = 0;
    rt.search.remove_idle();
    rt.lock.unlock(RL_INFO);
    if (waits) {
      if (!chosen<"MUTANT_STOP_SILENT">()) rt.wake_sysmon();
      return;  // for ever, if sysmon does not come
    }
    rt.procs.store(1, release);
    rt.lock.lock(RL_INFO);
    rt.stopping.store(false, relaxed);
    rt.lock.unlock(RL_INFO);
    if (!chosen<"MUTANT_START_SILENT">()) rt.wake_sysmon_if_asleep();
    ms[0].grip.leave();
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Publish<true>>("a goroutine becomes ready", model::bounded(4))
      .explore<Publish<false>>("no thread for it", model::bounded(4))
      .explore<KeeperGoes>("the keeper goes", model::bounded(4))
      .explore<Stop<false>>("the world is stopped and started", model::bounded(4))
      .explore<Stop<true>>("the world waits to be stopped", model::bounded(4))
      .explore<OutOfSight>("out of sight", model::bounded(2))
      .explore<OutOfSight>("out of sight", model::random(200'000))
      .report();
}
