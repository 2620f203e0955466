// Model of [poll-role] and [interrupt]: events come while threads go to sleep, ask, sleep in the
// poller and are handed Ps.
//
// The model mirrors network.cc (poll, sleep_in_poller, look_after, want_events), poller.cc
// (wait, interrupt), find_work.cc (rest) and wake.cc (start_searcher, wake) with the same locks.
// Each event makes one goroutine ready, which ends at once.
//
// Checked   When nobody does anything any more: no event waits in the kernel, no goroutine in the
//           queue, and nobody who was handed a P sleeps. One has the role at a time, and sees what
//           the one before did with the poller.
// Bounds    See main(): preemptions are bounded. There are as many Ms as Ps, and no further thread
//           can be had.
//
// Mutant MUTANT_NO_FENCE          sysmon and who goes to sleep miss each other
// Mutant MUTANT_RELAXED_RELEASE   the next that has the role does not see what the one before did
// Mutant MUTANT_BLIND_EXCHANGE    two have the role
// Mutant MUTANT_TORN_EXCHANGE     an interruption is wiped out
// Mutant MUTANT_SYSMON_SILENT     sysmon starts no searcher after it asked
// Mutant MUTANT_NOT_AWAITED       a plain thread that waits does not see to it that somebody asks
// Mutant MUTANT_LISTED_UNSEEN     an M blocks in the poller although it was handed a P
// Mutant MUTANT_SAYS_LATE         an M says after the unlock that it sleeps in the poller
// Mutant MUTANT_NO_INTERRUPT      a waker only sets the event of an M that sleeps in the poller
// Mutant MUTANT_CLEARED_FIRST     who blocks says that it has read the interruption before it reads
//                                 it
#include "model_run.h"

#include "poll/interruption.h"
#include "sched/rest/poll_role.h"
#include "sched/rest/search.h"
#include "waiters.h"

namespace {

using magpie::base::acquire;
using magpie::base::Atomic;
using magpie::base::relaxed;
using magpie::base::release;
using magpie::poll::Interruption;
using magpie::sched::PollRole;
using magpie::sched::Search;
using model::chosen;
using Role = PollRole::Role;

// Who is awake. The last to fall asleep checks, and lets the others end. The model's own: threads
// take turns.
struct Awake {
  int count;
  bool over = false;
};

// epoll and its eventfd.
class Kernel {
 public:
  explicit Kernel(Awake& awake) : awake_(awake) {}

  void post() {
    lock_.lock(RL_INFO);
    ++events_;
    let_go();
    lock_.unlock(RL_INFO);
  }
  void write_event() {
    lock_.lock(RL_INFO);
    ++written_;
    let_go();
    lock_.unlock(RL_INFO);
  }
  void read_event() {
    lock_.lock(RL_INFO);
    written_ = 0;
    lock_.unlock(RL_INFO);
  }
  int ask() {
    lock_.lock(RL_INFO);
    int got = std::exchange(events_, 0);
    lock_.unlock(RL_INFO);
    return got;
  }
  struct Woken {
    int events;
    bool by_event;
  };
  // fall_asleep() is called if it blocks; true: all is over.
  template <class FallAsleep>
  Woken block(FallAsleep fall_asleep) {
    lock_.lock(RL_INFO);
    if (events_ == 0 && written_ == 0) {
      blocks_ = true;
      lock_.unlock(RL_INFO);
      fall_asleep();
      lock_.lock(RL_INFO);
      while (blocks_ && !awake_.over) wake_up_.wait(lock_, RL_INFO);
    }
    Woken woken{std::exchange(events_, 0), written_ != 0};
    lock_.unlock(RL_INFO);
    return woken;
  }
  void let_all_go() {
    lock_.lock(RL_INFO);
    wake_up_.notify_all(RL_INFO);
    lock_.unlock(RL_INFO);
  }
  int left() const { return events_; }

 private:
  void let_go() {
    if (!blocks_) return;
    blocks_ = false;
    ++awake_.count;
    wake_up_.notify_all(RL_INFO);
  }

  Awake& awake_;
  rl::mutex lock_;
  rl::condition_variable wake_up_;
  // guarded by lock_
  int events_ = 0, written_ = 0;
  bool blocks_ = false;
};

struct M {
  model::WakeUp wake_up;
  bool searching = false;
  bool listed = false;             // guarded by lock
  rl::var<bool> sleeps_in_poller;  // guarded by lock until it is taken off the list
  bool handed_searching = false;
};

template <int ms_count, int threads>
struct Runtime {
  Awake awake{threads};
  Search search;
  PollRole role;
  Interruption interruption;
  Kernel kernel{awake};
  Atomic<int> attached{1};
  Atomic<int> ready{0};  // the global queue: relaxed, only the protocols order
  rl::var<int> asked;    // of whoever has the role
  rl::mutex lock;
  // guarded by lock
  int idle = 0;
  int list[ms_count + 1];  // one more, for moves
  int listed = 0;

  M ms[ms_count];

  void begin() {
    asked(RL_INFO) = 0;
    for (M& m : ms) m.sleeps_in_poller(RL_INFO) = false;
  }

  // wake.cc
  void wake_searcher() {
    if (search.try_book_searcher()) start_searcher();
  }
  void start_searcher() {
    lock.lock(RL_INFO);
    bool found = idle > 0;
    if (found) {
      --idle;
      search.remove_idle();
    } else {
      search.stop();
    }
    lock.unlock(RL_INFO);
    if (!found) return;
    lock.lock(RL_INFO);
    if (listed == 0) {
      search.stop();
      ++idle;
      search.add_idle();
      lock.unlock(RL_INFO);
      return;
    }
    M& m = ms[list[listed - 1]];
    take_off_locked(list[listed - 1]);
    lock.unlock(RL_INFO);
    m.handed_searching = true;
    bool polls = m.sleeps_in_poller(RL_INFO);
    ++awake.count;
    m.wake_up.send();
    if (polls && !chosen<"MUTANT_NO_INTERRUPT">()) interrupt();
  }
  void take_off_locked(int index) {
    int at = 0;
    while (list[at] != index) ++at;
    --listed;
    for (; at < listed; ++at) list[at] = list[at + 1];
    ms[index].listed = false;
  }

  // poller.cc
  void interrupt() {
    if (interruption.ask()) kernel.write_event();
  }
  int block() {
    auto woken = kernel.block([&] { fall_asleep(); });
    if (woken.by_event) {
      if (chosen<"MUTANT_CLEARED_FIRST">()) interruption.drained();
      kernel.read_event();
      if (!chosen<"MUTANT_CLEARED_FIRST">()) interruption.drained();
    }
    return woken.events;
  }

  // network.cc
  bool in_use() const { return attached.load(acquire) != 0; }
  int use_role(int got) {
    asked(RL_INFO) = asked(RL_INFO) + 1;
    role.give_back();
    return got;
  }
  int poll() {
    if (!in_use() || !role.try_take(Role::asks)) return 0;
    return use_role(kernel.ask());
  }
  enum class Slept { with_p, in_vain, not_at_all };
  Slept sleep_in_poller(int index) {
    M& m = ms[index];
    if (!in_use() || !role.try_take(Role::sleeps)) return Slept::not_at_all;
    lock.lock(RL_INFO);
    if (!m.listed && !chosen<"MUTANT_LISTED_UNSEEN">()) {
      role.give_back();
      lock.unlock(RL_INFO);
      return Slept::not_at_all;
    }
    if (m.listed) {  // to the end: woken last
      take_off_locked(index);
      for (int i = listed; i > 0; --i) list[i] = list[i - 1];
      list[0] = index;
      ++listed;
      m.listed = true;
    }
    if (!chosen<"MUTANT_SAYS_LATE">()) m.sleeps_in_poller(RL_INFO) = true;
    lock.unlock(RL_INFO);
    if (chosen<"MUTANT_SAYS_LATE">()) m.sleeps_in_poller(RL_INFO) = true;
    int got = use_role(block());
    if (awake.over) return Slept::in_vain;
    bool has_p = false;
    lock.lock(RL_INFO);
    if (m.listed) {
      m.sleeps_in_poller(RL_INFO) = false;
      if (got != 0 && idle > 0) {
        has_p = true;
        --idle;
        take_off_locked(index);
        search.remove_idle();
      }
    }
    lock.unlock(RL_INFO);
    if (!has_p && got != 0) {
      ready.fetch_add(got, relaxed);
      wake_searcher();
    } else if (got > 1) {
      wake_searcher();
    }
    return has_p ? Slept::with_p : Slept::in_vain;
  }
  void look_after() {
    if (!role.is_free()) return;
    bool all_held = search.view().idle == 0;
    if (all_held && role.try_take(Role::asks)) ready.fetch_add(use_role(kernel.ask()), relaxed);
    if (!chosen<"MUTANT_SYSMON_SILENT">()) wake_searcher();
  }
  // A plain thread registers a descriptor and waits for it.
  void attach_and_wait() {
    attached.fetch_add(1, release);
    if (chosen<"MUTANT_NOT_AWAITED">()) return;
    magpie::base::light_fence();
    if (!role.somebody_sleeps()) wake_searcher();
  }

  // find_work.cc
  bool take_ready() {
    int count = ready.load(relaxed);
    while (count > 0) {
      if (ready.compare_exchange_strong(count, count - 1, relaxed, relaxed)) return true;
    }
    return false;
  }
  void find_all(M& m) {
    while (take_ready() || poll() != 0) {
      if (!m.searching) continue;
      m.searching = false;
      search.stop();
      wake_searcher();
    }
    if (!m.searching) m.searching = search.try_start(ms_count);
  }
  // False: all is over.
  bool rest(int index) {
    M& m = ms[index];
    lock.lock(RL_INFO);
    ++idle;
    list[listed++] = index;
    m.listed = true;
    search.rest(m.searching ? Search::Was::searching : Search::Was::not_searching);
    m.searching = false;
    lock.unlock(RL_INFO);
    for (;;) {
      search.before_second_look();
      if (ready.load(relaxed) != 0) {
        if (get_up(index)) return true;
        break;
      }
      Slept how = sleep_in_poller(index);
      if (awake.over) return false;
      if (how == Slept::with_p) return true;
      if (how == Slept::not_at_all) break;
    }
    fall_asleep();
    m.wake_up.wait();
    if (awake.over) return false;
    m.sleeps_in_poller(RL_INFO) = false;
    m.searching = std::exchange(m.handed_searching, false);
    return true;
  }
  bool get_up(int index) {
    lock.lock(RL_INFO);
    M& m = ms[index];
    bool can = m.listed && idle > 0;
    if (can) {
      --idle;
      take_off_locked(index);
      search.remove_idle_add_searcher();
      m.searching = true;
    }
    lock.unlock(RL_INFO);
    return can;
  }
  void work(int index) {
    do find_all(ms[index]);
    while (rest(index));
  }

  // One thread less does anything. The last checks, and lets the others end.
  void fall_asleep() {
    if (--awake.count != 0) return;
    RL_ASSERT(kernel.left() == 0);
    RL_ASSERT(ready.peek() == 0);
    awake.over = true;
    for (M& m : ms) m.wake_up.send();
    kernel.let_all_go();
  }
};

// One M goes to sleep while a plain thread publishes a goroutine and an event comes.
struct HandedOrEvent : model::Scenario<3> {
  Runtime<1, 3> rt;
  void before() override { rt.begin(); }
  void thread(unsigned index) override {
    if (index == 0) return rt.work(0);
    if (index == 1) {
      rt.ready.fetch_add(1, relaxed);
      rt.wake_searcher();
    } else {
      rt.kernel.post();
    }
    rt.fall_asleep();
  }
};

// An M is handed a P again and again: each time it has to leave the poller.
struct HandedTwice : model::Scenario<2> {
  Runtime<1, 2> rt;
  void before() override { rt.begin(); }
  void thread(unsigned index) override {
    if (index == 0) return rt.work(0);
    for (int i = 0; i < 2; ++i) {
      rt.ready.fetch_add(1, relaxed);
      rt.wake_searcher();
    }
    rt.fall_asleep();
  }
};

// Two Ms go to sleep: one of them in the poller.
struct TwoSleep : model::Scenario<3> {
  Runtime<2, 3> rt;
  void before() override { rt.begin(); }
  void thread(unsigned index) override {
    if (index < 2) return rt.work(static_cast<int>(index));
    rt.kernel.post();
    rt.ready.fetch_add(1, relaxed);
    rt.wake_searcher();
    rt.fall_asleep();
  }
};

// Sysmon asks in place of an M that goes to sleep meanwhile.
struct SysmonAsks : model::Scenario<3> {
  Runtime<1, 3> rt;
  void before() override { rt.begin(); }
  void thread(unsigned index) override {
    if (index == 0) return rt.work(0);
    if (index == 1) rt.look_after();
    if (index == 2) rt.kernel.post();
    rt.fall_asleep();
  }
};

// There was no descriptor. A plain thread registers one, and something comes for it.
struct FirstDescriptor : model::Scenario<2> {
  Runtime<1, 2> rt;
  void before() override {
    rt.begin();
    rt.attached.store(0, relaxed);
  }
  void thread(unsigned index) override {
    if (index == 0) return rt.work(0);
    rt.attach_and_wait();
    rt.kernel.post();
    rt.fall_asleep();
  }
};

// Two interrupt one who blocks, one of them twice, with something to say each time. It blocks until
// it has heard all.
struct Interrupted : model::Scenario<3> {
  Awake awake{3};
  Interruption interruption;
  Kernel kernel{awake};
  Atomic<int> said[3];  // relaxed: only the protocol orders

  void say(int what) {
    said[what].store(1, relaxed);
    if (interruption.ask()) kernel.write_event();
  }
  bool has_heard_all() {
    for (Atomic<int>& each : said) {
      if (each.load(relaxed) == 0) return false;
    }
    return true;
  }

  void thread(unsigned index) override {
    if (index == 1) return say(0);
    if (index == 2) {
      say(1);
      return say(2);
    }
    while (!has_heard_all()) {
      (void)kernel.block([] {});
      if (chosen<"MUTANT_CLEARED_FIRST">()) interruption.drained();
      kernel.read_event();
      if (!chosen<"MUTANT_CLEARED_FIRST">()) interruption.drained();
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Interrupted>("interrupted by two", model::bounded(4))
      .explore<FirstDescriptor>("the first descriptor", model::bounded(4))
      .explore<SysmonAsks>("sysmon asks", model::bounded(3))
      .explore<HandedOrEvent>("handed a P, or an event", model::bounded(3))
      .explore<HandedTwice>("handed a P twice", model::bounded(4))
      .explore<TwoSleep>("two go to sleep", model::bounded(2))
      .explore<TwoSleep>("two go to sleep", model::random(200'000))
      .report();
}
